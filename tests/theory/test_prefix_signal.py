"""Eq 5 carries no signal to the prefix; what Eq 4 and `inherit` do estimate."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import expected_gradient, tree_credit, trees
from tiny_mdp import at_depth, binary_mdp, random_mdp

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

ONE = F(1)
MDPS = [random_mdp(5, depth=3), random_mdp(6, depth=3, two_tokens=True, ends_early=True)]


def gradient(mdp, depths, siblings, propagation=F(19, 20), **options):
    schedule = make_schedule("equal", ScheduleOptions(len(depths), siblings, decisions=depths))
    settings = CreditOptions(gamma=ONE, propagation=propagation, **{"weight": "split", **options})
    return expected_gradient(mdp, trees(mdp, schedule), tree_credit(make_credit("bpo", settings)))


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("propagation", [F(0), F(19, 20), ONE])
@pytest.mark.parametrize(
    ("depths", "siblings", "prefix"),
    [
        ((1,), 3, "backbone"),
        ((2,), 2, "backbone"),
        ((1, 2), 2, "backbone"),
        ((1,), 3, "rows"),
        ((2,), 2, "rows"),
    ],
)
def test_the_expected_gradient_before_the_first_branch_point_is_zero(
    mdp, propagation, depths, siblings, prefix
):
    found = gradient(mdp, depths, siblings, propagation, prefix=prefix)
    assert at_depth(mdp.policy_gradient(ONE), 0) != {}
    assert at_depth(found, *range(depths[0])) == {}


def test_rows_with_a_later_branch_point_give_the_prefix_a_signal_that_is_mere_bias():
    """The backbone counts once a row, and how many rows it has depends on how it went on."""
    mdp = MDPS[1]  # episodes that end early never come to the second branch point
    assert at_depth(gradient(mdp, (1, 2), 2, prefix="rows"), 0) != {}
    assert at_depth(gradient(MDPS[0], (1, 2), 2, prefix="rows"), 0) == {}  # all come to it


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("propagation", [F(0), F(19, 20)])
def test_from_the_first_branch_point_on_inherit_has_the_exact_gradient(mdp, propagation):
    found, target = gradient(mdp, (1, 2), 2, propagation), mdp.policy_gradient(ONE)
    assert at_depth(found, 1, 2) == at_depth(target, 1, 2)


@pytest.mark.parametrize("mdp", MDPS[:1])
@pytest.mark.parametrize("propagation", [F(0), F(19, 20)])
def test_with_a_root_branch_point_the_papers_credit_is_unbiased_and_lambda_adds_nothing(mdp, propagation):
    assert gradient(mdp, (0, 2), 2, propagation) == mdp.policy_gradient(ONE)


@pytest.mark.parametrize("mdp", MDPS)
def test_without_inherit_only_the_branch_point_itself_learns(mdp):
    found, target = gradient(mdp, (1,), 3, suffix="none"), mdp.policy_gradient(ONE)
    assert at_depth(found, 1) == at_depth(target, 1)
    assert at_depth(found, 0, 2) == {} != at_depth(target, 0, 2)


@pytest.mark.parametrize("depths", [(1,), (2,), (1, 2)])
def test_a_reward_for_the_first_action_alone_is_never_learned_by_later_branch_points(depths):
    histories = [""] + list("01") + [a + b for a in "01" for b in "01"]
    policy = {history: F(1, 2) for history in histories} | {"": F(1, 4)}
    rewards = {"1": ONE}
    mdp = binary_mdp(3, policy, rewards)
    target = mdp.policy_gradient(ONE)
    assert target == {(((), ""), "1"): F(3, 16), (((), ""), "0"): F(-3, 16)}  # p (1 - p) at p = 1/4
    assert gradient(mdp, depths, 3) == {}
    assert gradient(mdp, (0, 2), 2) == target
