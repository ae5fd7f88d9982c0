"""The tools of this folder, checked against what does not depend on them."""

from __future__ import annotations

import math
from fractions import Fraction as F

import pytest
from enumeration import exact, expected_gradient, multisets, tree_credit, trees
from tiny_mdp import TinyMDP, random_mdp

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CREDITS, CreditOptions, make_credit

OPTIONS = CreditOptions(gamma=F(3, 4), propagation=F(1, 2))


@pytest.mark.parametrize("ends_early", [False, True])
def test_the_target_is_the_derivative_of_the_expected_return(ends_early):
    mdp, gamma, step = random_mdp(3, depth=2, two_tokens=True, ends_early=ends_early), 0.75, 1e-5
    gradient = mdp.policy_gradient(F(3, 4), discount_states=True)
    for node, law in mdp.policy.items():
        for token in law:
            values = []
            for sign in (1, -1):
                weights = {t: float(p) * math.exp(sign * step * (t == token)) for t, p in law.items()}
                moved = {t: w / sum(weights.values()) for t, w in weights.items()}
                values.append(float(TinyMDP({**mdp.policy, node: moved}, mdp.rewards).value((), gamma)))
            assert float(gradient.get((node, token), 0)) == pytest.approx(
                (values[0] - values[1]) / (2 * step), abs=1e-8
            )


@pytest.mark.parametrize("name", ["equal", "root", "entropy", "entropy-threshold"])
@pytest.mark.parametrize("fill", [False, True])
def test_probabilities_of_all_trees_sum_to_one(name, fill):
    points = 1 if name == "root" else 2
    schedule = make_schedule(name, ScheduleOptions(points, 2, spacing=2, horizon=3))
    found = list(trees(random_mdp(3, depth=3, ends_early=True), schedule, fill=fill))
    assert sum(p for _, p in found) == 1
    assert not fill or {tree.returns for tree, _ in found} == {1 + points}


def test_multisets_have_multinomial_probabilities():
    found = {
        tuple(steps[0][1] for steps in draw): p
        for draw, p in multisets([([((), "a")], F(1, 3)), ([((), "b")], F(2, 3))], 3)
    }
    assert found == {
        ("a", "a", "a"): F(1, 27),
        ("a", "a", "b"): 3 * F(2, 27),
        ("a", "b", "b"): 3 * F(4, 27),
        ("b", "b", "b"): F(8, 27),
    }


@pytest.mark.parametrize("name", sorted(CREDITS))
def test_credits_treat_siblings_alike_so_that_multisets_suffice(name):
    mdp = random_mdp(3, depth=2)
    schedule = make_schedule("root", ScheduleOptions(1, 4))
    credit = tree_credit(make_credit(name, OPTIONS))
    for tree, _ in trees(mdp, schedule):
        once = credit(tree)
        tree.branches[1:] = tree.branches[:0:-1]
        again = credit(tree)
        assert [again.advantages[0], *again.advantages[:0:-1]] == once.advantages
        assert [again.weights[0], *again.weights[:0:-1]] == once.weights


def test_inexact_numbers_are_not_taken_for_fractions():
    assert exact(1 / 3) == F(1, 3)
    with pytest.raises(ValueError, match="not exact"):
        exact(2**0.5)


def test_advantages_stay_fractions():
    mdp = random_mdp(3, depth=2)
    schedule = make_schedule("equal", ScheduleOptions(1, 2, decisions=(1,)))
    for name in ("bpo", "bpo-corrected"):
        for tree, _ in trees(mdp, schedule):
            found = tree_credit(make_credit(name, OPTIONS))(tree)
            assert not any(isinstance(value, float) for own in found.advantages for value in own)


def test_an_uncredited_tree_has_no_gradient():
    mdp = random_mdp(3, depth=2)
    schedule = make_schedule("equal", ScheduleOptions(0, 1, horizon=2))
    assert expected_gradient(mdp, trees(mdp, schedule), tree_credit(make_credit("bpo", OPTIONS))) == {}
