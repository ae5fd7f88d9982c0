"""Variances of advantages, Eq 7 to 10, and the covariance of two branch points on one backbone (exact)."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import exact, tree_credit, trees
from tiny_mdp import random_mdp

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

GAMMA = F(3, 4)
MDPS = [random_mdp(5, depth=3), random_mdp(6, depth=3), random_mdp(7, depth=3)]


def law_of_return(mdp, state=()):
    """Return-to-go from `state` and its probability, for each continuation."""
    for steps, probability in mdp.episodes(state):
        yield sum(GAMMA**i * mdp.reward(s, a) for i, (s, a) in enumerate(steps)), probability


def variance(pairs):
    pairs = list(pairs)
    average = sum(p * x for x, p in pairs)
    return sum(p * (x - average) ** 2 for x, p in pairs)


def residual_variance(mdp, depth):
    """sigma_t^2 = E[Var(G_t | s_t)]."""
    states = {state: p for state, p in mdp.reach().items() if len(state) == depth}
    return sum(p * variance(law_of_return(mdp, state)) for state, p in states.items())


def expectation(mdp, name, depths, siblings, of):
    """E of a function of the advantages of one tree."""
    schedule = make_schedule("equal", ScheduleOptions(len(depths), siblings, decisions=depths))
    options = CreditOptions(gamma=GAMMA, propagation=F(0), suffix="none")
    credit = tree_credit(make_credit(name, options))
    return sum((p * of(credit(tree).advantages) for tree, p in trees(mdp, schedule)), F(0))


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_eq_7_splits_the_variance_at_any_decision(mdp, depth):
    # the return seen from decision t: what was earned before it is known there
    seen = []
    for state, p in mdp.reach().items():
        if len(state) == depth:
            past = sum(GAMMA**i * mdp.reward(state[:i], state[i]) for i in range(depth))
            seen.append((past + GAMMA**depth * mdp.value(state, GAMMA), p))
    explained = variance(seen)
    assert variance(law_of_return(mdp)) == GAMMA ** (2 * depth) * residual_variance(mdp, depth) + explained


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("siblings", [2, 3])
def test_eq_8_rollouts_from_the_root_carry_all_of_it(mdp, siblings):
    found = expectation(mdp, "rloo", (0,), siblings, lambda a: exact(a[0][0]) ** 2)
    assert found == F(siblings, siblings - 1) * variance(law_of_return(mdp))


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize(("depth", "siblings"), [(0, 2), (1, 2), (1, 4), (2, 3)])
def test_eq_9_siblings_carry_the_residual_alone(mdp, depth, siblings):
    share = F(siblings, siblings - 1) * residual_variance(mdp, depth)
    assert expectation(mdp, "bpo", (depth,), siblings, lambda a: exact(a[0][depth]) ** 2) == share
    assert expectation(mdp, "bpo", (depth,), siblings, lambda a: mean_of(a[1:], lambda x: x * x)) == share


def mean_of(branches, function=lambda x: x):
    """Mean over siblings at their first decision: one alone is no fair draw from a multiset."""
    return sum(function(exact(own[0])) for own in branches) / F(len(branches))


@pytest.mark.parametrize("siblings", [2, 3])
def test_two_branch_points_of_one_backbone_share_its_return(siblings):
    """Covariance of local advantages at s < t: gamma^(t-s) sigma_t^2, and times -1/(K-1) for each sibling."""
    mdp, first, second, others = MDPS[0], 1, 2, siblings - 1
    shared = GAMMA ** (second - first) * residual_variance(mdp, second)
    at_first = {"backbone": lambda a: exact(a[0][first]), "sibling": lambda a: mean_of(a[1 : 1 + others])}
    at_second = {"backbone": lambda a: exact(a[0][second]), "sibling": lambda a: mean_of(a[1 + others :])}
    factor = {"backbone": F(1), "sibling": F(-1, others)}
    assert shared > 0
    for one, early in at_first.items():
        for other, late in at_second.items():
            found = expectation(mdp, "bpo", (first, second), siblings, lambda a, x=early, y=late: x(a) * y(a))
            assert found == factor[one] * factor[other] * shared
