"""REINFORCE and RLOO have the exact gradient in expectation; so has `bpo` with one root branch point."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import expected_gradient, tree_credit, trees
from tiny_mdp import random_mdp, scaled

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

GAMMA = F(3, 4)
MDPS = [
    random_mdp(1, depth=3),
    random_mdp(2, depth=3, ends_early=True),
    random_mdp(3, depth=2, two_tokens=True, ends_early=True),
]


def gradient(mdp, name, siblings, gamma=GAMMA, **options):
    schedule = make_schedule("root", ScheduleOptions(1, siblings))
    settings = CreditOptions(gamma=gamma, propagation=F(1, 2), weight="split", **options)
    return expected_gradient(mdp, trees(mdp, schedule), tree_credit(make_credit(name, settings)))


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("siblings", [2, 3])
def test_reinforce_is_unbiased_for_the_sum_of_discounted_action_values(mdp, siblings):
    assert gradient(mdp, "reinforce", siblings) == mdp.policy_gradient(GAMMA)


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("siblings", [2, 3])
@pytest.mark.parametrize("name", ["rloo", "bpo"])
def test_flat_credit_at_the_root_is_unbiased_for_the_discounted_return(mdp, siblings, name):
    assert gradient(mdp, name, siblings) == mdp.policy_gradient(GAMMA, discount_states=True)


@pytest.mark.parametrize("mdp", MDPS)
def test_telescoping_at_the_root_is_unbiased_for_the_sum_of_discounted_action_values(mdp):
    assert gradient(mdp, "bpo-corrected", 3) == mdp.policy_gradient(GAMMA)


@pytest.mark.parametrize("siblings", [2, 3])
def test_grpo_without_the_deviation_shrinks_the_gradient_by_k_minus_1_over_k(siblings):
    mdp = MDPS[0]
    found = gradient(mdp, "grpo", siblings, gamma=F(1), scale="none")
    assert found == scaled(mdp.policy_gradient(F(1)), F(siblings - 1, siblings))
