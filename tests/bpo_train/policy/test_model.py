"""The policy: made from a seed, written and read as safetensors, and nothing else read."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bpo_train.policy import FormatOptions, TinyModel, load_policy, new_policy, train_tokenizer
from tiny_models import tiny_tokenizer

SIZE = TinyModel(hidden_size=16, layers=1, heads=4, kv_heads=2, window=64)


def make(seed: int = 0):
    return new_policy(tiny_tokenizer(), SIZE, FormatOptions(), seed)


def weights(policy) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in policy.model.parameters()])


def test_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    one = make(0)
    torch.manual_seed(2)
    assert torch.equal(weights(one), weights(make(0)))
    assert not torch.equal(weights(one), weights(make(1)))


def test_the_global_generator_is_not_touched():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    make(0)
    assert torch.equal(torch.rand(1), expected)


def test_a_tiny_model_is_as_it_was_ordered():
    policy = make()
    config = policy.model.config
    assert (config.hidden_size, config.num_hidden_layers, config.num_key_value_heads) == (16, 1, 2)
    assert config.max_position_embeddings == 64
    assert config.vocab_size == len(policy.tokenizer)
    head = policy.model.get_output_embeddings().weight
    assert head is policy.model.get_input_embeddings().weight
    assert float(head[1:].detach().std()) == pytest.approx(SIZE.initial_spread, rel=0.1)


def test_a_saved_policy_is_the_same_policy(tmp_path):
    policy = make()
    policy.save(tmp_path)
    loaded = load_policy(str(tmp_path), FormatOptions())
    ids = torch.tensor([policy.tokenizer.encode("search red shoes")])
    assert torch.equal(loaded.model(ids).logits, policy.model(ids).logits)
    assert loaded.tokenizer.get_vocab() == policy.tokenizer.get_vocab()
    assert loaded.format.stop_ids == policy.format.stop_ids
    assert loaded.format.start("é 漢", {}) == policy.format.start("é 漢", {})


def test_weights_are_loaded_as_they_are_asked_for(tmp_path):
    make().save(tmp_path)
    loaded = load_policy(str(tmp_path), FormatOptions(), dtype="bfloat16")
    assert {p.dtype for p in loaded.model.parameters()} == {torch.bfloat16}


def test_pickled_weights_are_refused(tmp_path):
    policy = make()
    policy.save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(policy.model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"holds no \*.safetensors"):
        load_policy(str(tmp_path), FormatOptions())


def test_what_is_no_folder_and_no_hub_id_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no hub id"):
        load_policy(str(tmp_path / "nowhere"), FormatOptions())


def test_a_folder_that_is_no_policy_is_refused(tmp_path):
    make().save(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match="cannot load the policy"):
        load_policy(str(tmp_path), FormatOptions())


def test_unknown_dtypes_and_devices_are_refused(tmp_path):
    make().save(tmp_path)
    with pytest.raises(ValueError, match="unknown dtype 'float8'; expected one of"):
        load_policy(str(tmp_path), FormatOptions(), dtype="float8")
    with pytest.raises(ValueError, match="cannot put the policy on the device 'abacus'"):
        load_policy(str(tmp_path), FormatOptions(), device="abacus")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_decoding_gives_back_what_was_encoded(text):
    tokenizer = tiny_tokenizer()
    if "<pad>" not in text:
        assert tokenizer.decode(tokenizer.encode(text), clean_up_tokenization_spaces=False) == text


def test_a_tokenizer_learns_words_up_to_its_size():
    tokenizer = train_tokenizer(["search shoes\n"] * 20, 290)
    assert len(tokenizer) <= 290
    assert len(tokenizer.encode("search shoes\n")) < len("search shoes\n")
