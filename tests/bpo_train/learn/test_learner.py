"""The learner: one update is the step that AdamW makes on Eq 6, whatever the layout and batching."""

from __future__ import annotations

import copy
import dataclasses
import math

import pytest
import torch

from bpo_train.credit import TreeCredit
from bpo_train.learn import Learner, LearnOptions
from bpo_train.learn.packing import LAYOUTS
from bpo_train.tree import Decision, RolloutTree
from random_trees import random_credit, random_tree
from tiny_models import tiny_model

PLAIN = LearnOptions(learning_rate=0.01, decay="constant", kl_weight=0.0, max_grad_norm=1e9, loss_length=1)


def options(**changes) -> LearnOptions:
    return dataclasses.replace(PLAIN, **changes)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def logprob(model, context: list[int], action: list[int], temperature: float = 1.0) -> torch.Tensor:
    """Log-probs of an action by the model's own forward pass: float[len(action)]."""
    logits = model(torch.tensor([context + action])).logits[0, len(context) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(action)[:, None])[:, 0]


def one_decision(model, context=(1, 2, 3), action=(4, 5), advantage=0.5, weight=1.0, temperature=1.0):
    """A tree of one decision, its behaviour log-probs the model's own."""
    behaviour = logprob(model, [*context], [*action], temperature).tolist()
    tree = RolloutTree("t")
    tree.backbone.decisions = [Decision([*context], [*action], behaviour, None, "a")]
    return tree, TreeCredit([[advantage]], [[weight]])


def batch(count: int = 4):
    grown = [random_tree(seed) for seed in range(count)]
    return grown, [random_credit(tree, seed) for seed, tree in enumerate(grown)]


def weights(model) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# One step by hand


def adamw_by_hand(model, gradients, state, step, rate=0.01, betas=(0.9, 0.999), eps=1e-8):
    """p <- p - rate * m_hat / (sqrt(v_hat) + eps), without weight decay."""
    for parameter, gradient, (m, v) in zip(model.parameters(), gradients, state):
        m.mul_(betas[0]).add_((1 - betas[0]) * gradient)
        v.mul_(betas[1]).add_((1 - betas[1]) * gradient**2)
        m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
        with torch.no_grad():
            parameter -= rate * m_hat / (v_hat.sqrt() + eps)


def test_two_updates_are_the_steps_of_adamw_on_eq_6():
    model = tiny_model()
    by_hand = copy.deepcopy(model)
    learner = Learner(model, options(loss_length=8))
    state = [(torch.zeros_like(p), torch.zeros_like(p)) for p in by_hand.parameters()]
    for step in (1, 2):
        tree, credit = one_decision(by_hand, advantage=0.5, weight=0.25)
        # on policy the gradient of Eq 6 is -w A grad log pi, summed over tokens, over trees x loss_length
        loss = -0.25 * 0.5 * logprob(by_hand, [1, 2, 3], [4, 5]).sum() / (1 * 8)
        adamw_by_hand(by_hand, torch.autograd.grad(loss, list(by_hand.parameters())), state, step)
        learner.update([tree], [credit], generator())
        assert torch.allclose(weights(model), weights(by_hand), atol=2e-6)


def test_temperature_divides_the_learners_logits():
    model = tiny_model()
    by_hand = copy.deepcopy(model)
    tree, credit = one_decision(model, temperature=0.5)
    loss = -0.5 * logprob(by_hand, [1, 2, 3], [4, 5], temperature=0.5).sum()
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(by_hand.parameters()))])
    found = Learner(model, PLAIN, temperature=0.5).update([tree], [credit], generator())
    assert found["grad_norm"] == pytest.approx(float(gradient.norm()), rel=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_update_makes_good_actions_likelier_and_bad_ones_less_so(sign):
    model = tiny_model()
    tree, credit = one_decision(model, advantage=sign * 1.0)
    before = logprob(model, [1, 2, 3], [4, 5]).sum()
    Learner(model, options(learning_rate=1e-3)).update([tree], [credit], generator())
    assert sign * (logprob(model, [1, 2, 3], [4, 5]).sum() - before).item() > 0


def test_the_gradients_norm_is_clipped():
    # AdamW's first step does not depend on the gradient's scale, so the clip is read off the gradient itself
    model = tiny_model()
    tree, credit = one_decision(model)
    found = Learner(model, options(max_grad_norm=0.01)).update([tree], [credit], generator())
    left = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert found["grad_norm"] > 0.01
    assert float(left) == pytest.approx(0.01, rel=1e-3)


# Layouts and batching


def updated(grown, credits, reference=None, **changes) -> torch.Tensor:
    model = tiny_model()
    # AdamW's first step is close to the sign of the gradient; two updates make sizes count as well
    learner = Learner(model, options(learning_rate=1e-3, **changes), reference=reference)
    for _ in range(2):
        learner.update(grown, credits, generator())
    return weights(model)


@pytest.mark.parametrize("kl", ["", "exact", "k2", "k3"])
def test_the_layouts_lead_to_the_same_weights(kl):
    extra = {"kl": kl, "kl_weight": 0.1, "reference": tiny_model(seed=1)} if kl else {}
    tree, rows = (updated(*batch(), layout=layout, **extra) for layout in LAYOUTS)
    assert torch.allclose(tree, rows, atol=5e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_micro_batches_and_chunks_lead_to_the_same_weights(layout):
    whole = updated(*batch(), layout=layout, max_tokens=10**6)
    parts = updated(*batch(), layout=layout, max_tokens=1, logit_chunk=2)
    assert torch.allclose(parts, whole, atol=5e-5)


# Normalisation and metrics


def reported(grown, credits, **changes) -> dict[str, float]:
    return Learner(tiny_model(), options(**changes)).update(grown, credits, generator())


def test_constant_divides_by_trees_and_length():
    grown, credits = batch()
    one, other = (reported(grown, credits, loss_length=length) for length in (1, 50))
    assert other["loss"] == pytest.approx(one["loss"] / 50)
    assert other["grad_norm"] == pytest.approx(one["grad_norm"] / 50, rel=1e-4)


def test_twice_the_same_trees_have_the_same_loss():
    grown, credits = batch()
    for normalise in ("constant", "tokens"):
        once = reported(grown, credits, normalise=normalise)
        twice = reported(grown * 2, credits * 2, normalise=normalise)
        assert twice["loss"] == pytest.approx(once["loss"], rel=1e-5)


def test_tokens_divides_by_the_generated_tokens():
    grown, credits = batch()
    tokens = sum(tree.generated_tokens() for tree in grown)
    constant = reported(grown, credits, loss_length=1)
    assert reported(grown, credits, normalise="tokens")["loss"] == pytest.approx(
        constant["loss"] * len(grown) / tokens
    )


def test_the_loss_on_policy_is_minus_the_weighted_advantages_of_all_tokens():
    model = tiny_model()
    tree, credit = one_decision(model, advantage=0.5, weight=0.25)
    assert Learner(model, PLAIN).update([tree], [credit], generator())["loss"] == pytest.approx(-0.25)


def test_a_disagreeing_engine_is_weighted_down_up_to_the_bound():
    model = tiny_model()
    tree, credit = one_decision(model, action=(4, 5, 6), advantage=1.0)
    own = tree.backbone.decisions[0].logprobs
    tree.backbone.decisions[0].logprobs = [own[0] + 1.0, own[1] - 0.5, own[2] - 3.0]
    found = Learner(model, options(mismatch_bound=2.0)).update([tree], [credit], generator())
    # weights exp(-1), exp(0.5) and exp(3) cut to 2; mean absolute difference of log-probs 1.5
    assert found["loss"] == pytest.approx(-(math.exp(-1) + math.exp(0.5) + 2.0), rel=1e-4)
    assert found["mismatch"] == pytest.approx(1.5, rel=1e-4)


def test_kl_is_a_penalty_on_every_action_token():
    model, reference = tiny_model(), tiny_model(seed=1)
    tree, credit = one_decision(model, advantage=0.0)
    learner = Learner(model, options(kl_weight=0.3, learning_rate=1e-3), reference=reference)

    def kl() -> float:
        with torch.no_grad():
            p, q = (
                m(torch.tensor([[1, 2, 3, 4]])).logits[0, 2:4].log_softmax(-1) for m in (model, reference)
            )
        return float((p.exp() * (p - q)).sum())

    before = kl()
    found = learner.update([tree], [credit], generator())
    assert found["loss"] == pytest.approx(0.3 * before, rel=1e-4)
    assert found["kl"] == pytest.approx(before / 2, rel=1e-4)  # a token
    assert kl() < before


def test_the_reference_is_not_trained():
    model, reference = tiny_model(), tiny_model(seed=1)
    before = weights(reference)
    Learner(model, options(kl_weight=0.3), reference=reference).update(*batch(), generator())
    assert torch.equal(weights(reference), before)
    assert all(p.grad is None for p in reference.parameters())


def test_a_batch_without_credit_changes_nothing():
    model = tiny_model()
    before = weights(model)
    tree, credit = one_decision(model, advantage=0.0)
    found = Learner(model, PLAIN).update([tree], [credit], generator())
    assert torch.equal(weights(model), before)
    assert found["loss"] == found["grad_norm"] == 0


# Epochs, mini-batches, the proximal policy


def steps_taken(learner: Learner) -> int:
    return int(next(iter(learner.optimizer.state.values()))["step"])


@pytest.mark.parametrize(("epochs", "minibatches", "steps"), [(1, 1, 1), (3, 1, 3), (2, 3, 6), (1, 9, 4)])
def test_every_epoch_takes_as_many_steps_as_there_are_mini_batches(epochs, minibatches, steps):
    learner = Learner(tiny_model(), options(epochs=epochs, minibatches=minibatches))
    grown, credits = batch(4)  # 9 mini-batches of 4 trees are 4
    learner.update(grown, [TreeCredit(c.weights, c.weights) for c in credits], generator())
    assert steps_taken(learner) == steps


def test_before_the_first_step_every_ratio_is_one():
    learner = Learner(tiny_model(), options(epochs=2, learning_rate=1e-12, clip=1e-5))
    assert learner.update(*batch(), generator())["clip_fraction"] == 0


def test_dropout_does_not_disturb_the_ratio():
    model = tiny_model(attention_dropout=0.5).train()
    learner = Learner(model, options(epochs=2, learning_rate=1e-12, clip=1e-5))
    assert learner.update(*batch(), generator())["clip_fraction"] == 0


@pytest.mark.parametrize(("clip", "low", "high"), [(0.2, 1.2, 1.3), (1e6, 2.0, math.inf)])
def test_later_epochs_stop_at_the_clip(clip, low, high):
    model = tiny_model()
    tree, credit = one_decision(model, action=(4,), advantage=1.0)
    before = logprob(model, [1, 2, 3], [4])
    # without momentum, which would carry the weights on after the gradient is gone
    learner = Learner(model, options(epochs=60, clip=clip, learning_rate=2e-4, betas=(0.0, 0.999)))
    found = learner.update([tree], [credit], generator())
    assert low < (logprob(model, [1, 2, 3], [4]) - before).exp().item() < high
    assert (found["clip_fraction"] > 0) == (clip < 1)


def test_one_epoch_and_one_mini_batch_are_on_policy():
    assert LearnOptions().on_policy
    assert not LearnOptions(epochs=2).on_policy
    assert not LearnOptions(minibatches=2).on_policy


def test_the_generator_alone_decides_the_order_of_mini_batches():
    one, other = (updated(*batch(), minibatches=2) for _ in range(2))
    assert torch.equal(one, other)


# Rates and state


def test_cosine_decay_by_hand():
    learner = Learner(tiny_model(), options(learning_rate=1.0, decay="cosine", updates=4))
    expected = [1.0, 0.5 + 0.25 * math.sqrt(2), 0.5, 0.5 - 0.25 * math.sqrt(2), 0.0, 0.0]
    assert [learner.learning_rate(i) for i in range(6)] == pytest.approx(expected)


def test_warm_up_is_linear():
    learner = Learner(tiny_model(), options(learning_rate=1.0, warmup=3))
    assert [learner.learning_rate(i) for i in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_the_rate_in_use_is_reported():
    learner = Learner(tiny_model(), options(learning_rate=1.0, decay="cosine", updates=2))
    rates = [learner.update(*batch(1), generator())["learning_rate"] for _ in range(2)]
    assert rates == pytest.approx([1.0, 0.5])


def test_a_restored_learner_goes_on_as_if_nothing_had_happened():
    model = tiny_model()
    learner = Learner(model, options(decay="cosine", updates=4))
    learner.update(*batch(), generator())
    twin = copy.deepcopy(model)
    restored = Learner(twin, options(decay="cosine", updates=4))
    restored.load_state_dict(copy.deepcopy(learner.state_dict()))
    for each in (learner, restored):
        each.update(*batch(), generator())
    assert torch.equal(weights(model), weights(twin))
    assert learner.updates == restored.updates == 2


# Refusals


def test_kl_needs_a_reference():
    with pytest.raises(ValueError, match="no reference model"):
        Learner(tiny_model(), options(kl_weight=0.1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"decay": "linear"},
        {"kl": "k1"},
        {"normalise": "rows"},
        {"layout": "graph"},
        {"epochs": 0},
        {"minibatches": 0},
        {"loss_length": 0},
        {"max_tokens": 0},
        {"logit_chunk": 0},
        {"learning_rate": 0.0},
        {"clip": -0.1},
        {"max_grad_norm": 0.0},
        {"mismatch_bound": 0.0},
        {"kl_weight": -1.0},
        {"kl_weight": float("nan")},
        {"updates": -1},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is"):
        options(**wrong)


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone():
    model = tiny_model()
    before = weights(model)
    tree, _ = one_decision(model)
    learner = Learner(model, options())
    with pytest.raises(FloatingPointError, match="gradient of update 1 is nan"):
        learner.update([tree], [TreeCredit([[math.nan]], [[1.0]])], generator())
    assert torch.equal(weights(model), before)
