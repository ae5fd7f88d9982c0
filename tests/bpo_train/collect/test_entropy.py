"""Entropy of a decision whose action has several tokens."""

from __future__ import annotations

import pytest

from bpo_train.collect.entropy import MEASURES, SAMPLED_ACTION_MEASURES, decision_entropy
from bpo_train.tree import Decision


def decision(entropies):
    return Decision([1], [2, 3, 4], [0.0] * 3, entropies, "buy")


@pytest.mark.parametrize(("measure", "value"), [("first", 0.5), ("mean", 1.0), ("sum", 3.0), ("max", 2.0)])
def test_measures(measure, value):
    assert decision_entropy(decision([0.5, 2.0, 0.5]), measure) == value


def test_all_but_the_first_token_look_at_the_sampled_action():
    assert set(MEASURES) - {"first"} == SAMPLED_ACTION_MEASURES


@pytest.mark.parametrize("entropies", [None, []])
def test_an_engine_without_entropies_is_named(entropies):
    with pytest.raises(ValueError, match="action 'buy' has no entropies"):
        decision_entropy(decision(entropies))


def test_surprisal_is_no_measure():
    with pytest.raises(ValueError, match="'surprisal': choose one of first, mean, sum, max"):
        decision_entropy(decision([1.0]), "surprisal")
