"""A model in bfloat16 is trained as one in float32: steps too small for its weights add up."""

from __future__ import annotations

import copy

import pytest
import torch

from bpo_train.learn import Learner, LearnOptions
from bpo_train.learn.precision import FullPrecision
from random_trees import random_credit, random_tree
from tiny_models import tiny_model

TREES = [random_tree(seed) for seed in range(3)]
CREDITS = [random_credit(tree, seed) for seed, tree in enumerate(TREES)]


def learner_of(model, rate: float) -> Learner:
    return Learner(model, LearnOptions(learning_rate=rate, decay="constant", kl_weight=0.0, loss_length=1))


def update(learner: Learner, times: int = 1) -> dict[str, float]:
    for _ in range(times):
        found = learner.update(TREES, CREDITS, torch.Generator().manual_seed(learner.updates))
    return found


def weights(model) -> torch.Tensor:
    return torch.cat([p.detach().float().flatten() for p in model.parameters()])


def test_steps_too_small_for_the_weights_add_up():
    # weights of about 0.3 have neighbours in bfloat16 that are 2e-3 apart: no single step of 1e-5 shows
    model = tiny_model().to(torch.bfloat16)
    learner = learner_of(model, 1e-5)
    before = weights(model)
    update(learner, 20)
    precise = torch.cat([w.flatten() for w in learner.precise.weights])
    assert float((precise - before).abs().max()) == pytest.approx(20 * 1e-5, rel=0.1)
    assert torch.equal(weights(model), precise.to(torch.bfloat16).float())


def test_a_model_in_float32_is_its_own_copy():
    model = tiny_model()
    precise = FullPrecision(model.parameters())
    assert all(p is w for p, w in zip(model.parameters(), precise.weights))
    assert precise.state_dict() == []


def test_going_on_from_a_saved_state_equals_never_having_stopped():
    model = tiny_model().to(torch.bfloat16)
    learner = learner_of(model, 1e-4)
    update(learner)
    state, rounded = copy.deepcopy(learner.state_dict()), copy.deepcopy(model)
    resumed = learner_of(rounded, 1e-4)
    resumed.load_state_dict(state)
    assert update(learner, 3) == update(resumed, 3)
    assert all(torch.equal(a, b) for a, b in zip(learner.precise.weights, resumed.precise.weights))


def test_a_state_of_another_precision_is_refused():
    state = learner_of(tiny_model().to(torch.bfloat16), 1e-4).state_dict()
    with pytest.raises(ValueError, match="full-precision weights"):
        learner_of(tiny_model(), 1e-4).load_state_dict(state)
