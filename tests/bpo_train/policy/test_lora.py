"""LoRA: the base is the reference, adapters alone are trained, a saved adapter goes on where it stopped."""

from __future__ import annotations

import copy
import importlib.util
import sys

import pytest
import torch

from bpo_train.engine import Request, Sampling
from bpo_train.engine.hf import HFEngine
from bpo_train.learn import Learner, LearnOptions
from bpo_train.learn.forward import token_logprobs
from bpo_train.learn.packing import collate, pack_tree
from bpo_train.policy import (
    FormatOptions,
    LoraOptions,
    Policy,
    WithoutAdapter,
    add_adapter,
    load_adapter,
    load_policy,
    make_format,
)
from random_trees import random_credit, random_tree
from support import need
from tiny_models import MODELS, tiny_model, tiny_tokenizer


@pytest.fixture(autouse=True)
def peft():
    need(importlib.util.find_spec("peft") is not None, "peft", "pip install 'bpo-envs[lora]'")


OPTIONS = LoraOptions(lora_rank=3)
LEARN = LearnOptions(learning_rate=0.01, decay="constant", kl_weight=0.1, loss_length=1)


def adapted(kind: str = "llama-tied"):
    return add_adapter(tiny_model(kind), OPTIONS, "tiny", seed=0)


def named(model) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def of_adapters(names) -> set[str]:
    return {name for name in names if ".lora_" in name}


def some_trees():
    grown = [random_tree(seed) for seed in range(3)]
    return grown, [random_credit(tree, seed) for seed, tree in enumerate(grown)]


def learner_of(model) -> Learner:
    return Learner(model, LEARN, reference=WithoutAdapter(model))


def update(learner: Learner) -> dict[str, float]:
    return learner.update(*some_trees(), torch.Generator().manual_seed(learner.updates))


def logprobs(model) -> torch.Tensor:
    (tree, *_), (credit, *_) = some_trees()
    batch = collate(pack_tree(tree, credit, True), torch.device("cpu"))
    with torch.no_grad():
        return token_logprobs(model, batch, 1.0, 64)


@pytest.mark.parametrize("kind", MODELS)
def test_the_reference_is_the_base_model_exactly_before_and_after_updates(kind):
    base, model = tiny_model(kind), adapted(kind)
    learner = learner_of(model)
    for _ in range(2):
        assert torch.equal(logprobs(WithoutAdapter(model)), logprobs(base))
        update(learner)
    assert not torch.allclose(logprobs(model), logprobs(base))


def test_a_fresh_adapter_changes_nothing():
    assert torch.equal(logprobs(adapted()), logprobs(tiny_model()))


def test_every_linear_layer_but_the_head_has_an_adapter():
    model = adapted()
    layers = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert {name.split(".")[-4] for name in of_adapters(named(model))} == layers
    assert len(of_adapters(named(model))) == 2 * len(layers) * model.config.num_hidden_layers


def test_an_update_changes_only_adapters():
    model = adapted()
    before = named(model)
    learner = learner_of(model)
    for _ in range(2):  # one of the two matrices starts at 0, so the other has no gradient at first
        update(learner)
    changed = {name for name, p in named(model).items() if not torch.equal(p, before[name])}
    assert changed == of_adapters(before)


def test_the_optimiser_holds_state_of_adapters_only():
    learner = learner_of(adapted())
    update(learner)
    held = [p.shape for group in learner.optimizer.param_groups for p in group["params"]]
    assert all(OPTIONS.lora_rank in shape for shape in held)


def test_the_adapter_still_learns_after_the_reference_was_asked():
    model = adapted()
    logprobs(WithoutAdapter(model))
    assert {n for n, p in model.named_parameters() if p.requires_grad} == of_adapters(named(model))


def test_a_failing_reference_leaves_the_adapter_on():
    model = adapted()
    update(learner_of(model))
    before = logprobs(model)
    with pytest.raises(TypeError):
        WithoutAdapter(model).get_decoder()(nonsense=object(), input_ids="x")
    assert torch.equal(logprobs(model), before)


def test_the_kl_of_a_fresh_adapter_is_zero():
    assert update(learner_of(adapted()))["kl"] == 0


def test_the_engine_runs_the_adapted_model():
    model = adapted()
    update(learner_of(model))
    (c,) = HFEngine(model).generate([Request([1, 2, 3], (1,))], Sampling(frozenset(), 5))
    logits = model(torch.tensor([[1, 2, 3, *c.tokens]])).logits[0, 2:-1]
    expected = logits.log_softmax(-1).gather(1, torch.tensor(c.tokens)[:, None])[:, 0]
    assert c.logprobs == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_fresh_adapter_depends_on_its_seed_and_on_nothing_else():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one = named(adapted())
    assert torch.equal(torch.rand(1), expected)
    other = named(adapted())
    assert all(torch.equal(one[name], other[name]) for name in one)


# Saved and read


def saved_policy(model, folder) -> Policy:
    tokenizer = tiny_tokenizer()
    policy = Policy(model, tokenizer, make_format(tokenizer, FormatOptions()))
    policy.save(folder)
    return policy


def test_going_on_from_a_saved_adapter_equals_never_having_stopped(tmp_path):
    model = adapted()
    learner = learner_of(model)
    update(learner)
    saved_policy(model, tmp_path)
    state = copy.deepcopy(learner.state_dict())
    again = load_adapter(tiny_model(), tmp_path)
    resumed = learner_of(again)
    resumed.load_state_dict(state)
    assert update(learner) == update(resumed)
    for name, parameter in named(again).items():
        assert torch.equal(parameter, named(model)[name]), name


def test_a_saved_adapter_is_small_and_in_pefts_format(tmp_path):
    model = adapted()
    saved_policy(model, tmp_path)
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {p.name for p in tmp_path.iterdir()}
    assert not (tmp_path / "model.safetensors").exists()


def test_adapters_stay_in_float32_where_the_model_is_not(tmp_path):
    model = add_adapter(tiny_model().to(torch.bfloat16), OPTIONS, "tiny", seed=0)
    kinds = {".lora_" in name: p.dtype for name, p in model.named_parameters()}
    assert kinds == {True: torch.float32, False: torch.bfloat16}
    update(learner_of(model))
    saved_policy(model, tmp_path)
    again = load_adapter(tiny_model().to(torch.bfloat16), tmp_path)
    assert all(torch.equal(p, named(model)[name]) for name, p in named(again).items())


def test_a_folder_with_an_adapter_loads_as_the_merged_model(tmp_path):
    base = tiny_model()
    saved_policy(base, tmp_path / "base")
    model = add_adapter(base, OPTIONS, str(tmp_path / "base"), seed=0)
    for _ in range(2):
        update(learner_of(model))
    saved_policy(model, tmp_path / "adapter")
    loaded = load_policy(str(tmp_path / "adapter"), FormatOptions()).model
    assert type(loaded) is type(tiny_model())
    assert of_adapters(named(loaded)) == set()
    assert logprobs(loaded).tolist() == pytest.approx(logprobs(model).tolist(), abs=1e-5)


def test_an_adapter_of_another_model_is_refused(tmp_path):
    saved_policy(adapted(), tmp_path)
    with pytest.raises(ValueError, match="does not fit the model"):
        load_adapter(tiny_model(head_dim=8), tmp_path)


def test_without_peft_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ValueError, match=r"pip install 'bpo-envs\[lora\]'"):
        add_adapter(tiny_model(), OPTIONS, "tiny", seed=0)


@pytest.mark.parametrize("wrong", [{"lora_rank": -1}, {"lora_rank": 4, "lora_alpha": 0.0}])
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        LoraOptions(**wrong)
