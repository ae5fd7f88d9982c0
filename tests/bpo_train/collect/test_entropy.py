"""Entropy of a decision whose action has several tokens."""

from __future__ import annotations

import math

import pytest

from bpo_train.collect.entropy import MEASURES, SAMPLED_ACTION_MEASURES, decision_entropy, list_entropy
from bpo_train.tree import Decision


def decision(entropies):
    return Decision([1], [2, 3, 4], [0.0] * 3, entropies, "buy")


@pytest.mark.parametrize(("measure", "value"), [("first", 0.5), ("mean", 1.0), ("sum", 3.0), ("max", 2.0)])
def test_measures(measure, value):
    assert decision_entropy(decision([0.5, 2.0, 0.5]), measure) == value


def test_all_but_the_first_token_look_at_the_sampled_action():
    assert set(MEASURES) - {"first", "actions"} == SAMPLED_ACTION_MEASURES


@pytest.mark.parametrize("entropies", [None, []])
def test_an_engine_without_entropies_is_named(entropies):
    with pytest.raises(ValueError, match="action 'buy' has no entropies"):
        decision_entropy(decision(entropies))


def test_surprisal_is_no_measure():
    with pytest.raises(ValueError, match="'surprisal': choose one of first, mean, sum, max"):
        decision_entropy(decision([1.0]), "surprisal")


def test_the_entropy_over_a_list_of_actions_is_that_of_the_normalised_scores():
    # two equally likely actions and one that is half as likely: 2/5, 2/5, 1/5
    expected = -(2 * 0.4 * math.log(0.4) + 0.2 * math.log(0.2))
    assert list_entropy([-10.0, -10.0, -10.0 - math.log(2)]) == pytest.approx(expected)
    assert list_entropy([-3.0]) == 0
    assert list_entropy([0.0, -math.inf]) == 0


def test_the_measure_actions_needs_its_entropy():
    decision = Decision([], [1], [0.0], [0.5], "act")
    with pytest.raises(ValueError, match="no entropy over a list of actions"):
        decision_entropy(decision, "actions")
    decision.action_entropy = 0.25
    assert decision_entropy(decision, "actions") == 0.25
