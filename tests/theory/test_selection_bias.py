"""Choosing branch points by what came after them biases Eq 4; deciding before the action does not."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import at_threshold, exact, expected_gradient, tree_credit, trees
from tiny_mdp import TinyMDP, at_depth, distance, norm, selection_example

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

ONE = F(1)


def schedule(name, siblings, **options):
    return make_schedule(name, ScheduleOptions(1, siblings, spacing=0, **options))


def paper(**options):
    settings = CreditOptions(gamma=ONE, propagation=ONE, weight="split", **options)
    return tree_credit(make_credit("bpo", settings))


def backbone_advantage(mdp, chosen):
    """E[A_backbone | the branch point is t], by t."""
    sums, weights = {}, {}
    credit = paper()
    for tree, probability in trees(mdp, chosen):
        for point in tree.branch_points:
            found = exact(credit(tree).advantages[0][point.depth])
            sums[point.depth] = sums.get(point.depth, F(0)) + probability * found
            weights[point.depth] = weights.get(point.depth, F(0)) + probability
    return {depth: sums[depth] / weights[depth] for depth in sums}


@pytest.fixture(scope="module")
def three_steps():
    return selection_example()


def test_top_entropy_over_the_finished_backbone_breaks_exchangeability(three_steps):
    found = backbone_advantage(three_steps, schedule("entropy", 2))
    assert found == {0: F(-3, 16), 1: 0}


def test_the_bias_is_half_the_norm_of_the_gradient(three_steps):
    target = three_steps.policy_gradient(ONE)
    found = expected_gradient(three_steps, trees(three_steps, schedule("entropy", 2)), paper())
    assert distance(found, target) / norm(target) == pytest.approx(0.496, abs=5e-4)


def test_a_threshold_on_the_way_keeps_it(three_steps):
    chosen = at_threshold(0.6, 1, 2)  # the root's entropy is 0.611
    assert backbone_advantage(three_steps, chosen) == {0: 0}
    found = expected_gradient(three_steps, trees(three_steps, chosen), paper())
    assert found == three_steps.policy_gradient(ONE)


def test_fresh_siblings_mend_eq_4_at_the_branch_point(three_steps):
    chosen = schedule("entropy", 2, fresh_siblings=True)
    found = expected_gradient(three_steps, trees(three_steps, chosen), paper())
    target = three_steps.policy_gradient(ONE)
    # the root is chosen with probability 7/10; state "1" whenever a backbone comes there
    assert found[((), ""), "1"] == F(7, 10) * target[((), ""), "1"]
    # (3/10), and inherited credit of siblings at the root, which come there too, adds 7/10
    assert found[(("1",), ""), "1"] == (1 + F(7, 10)) * target[(("1",), ""), "1"]


# Two-token actions: the first token decides the return, the second one only how uncertain the action looks.


def two_tokens(p):
    """Decision 0: "x?" with probability p returns 1, "y?" returns 0; only x's second token is uncertain.

    Decision 1 changes nothing; its mean entropy lies between those of "x?" and "y?".
    """
    half = {"u": F(1, 2), "v": F(1, 2)}
    sure = {"u": F(99, 100), "v": F(1, 100)}
    policy = {((), ""): {"x": p, "y": 1 - p}, ((), "x"): half, ((), "y"): sure}
    rewards = {}
    for token in "xy":
        for second in "uv":
            policy[(token + second,), ""] = {"m": F(1, 5), "n": F(4, 5)}  # 0.50 nats
            rewards[(token + second,)] = ONE if token == "x" else F(0)
    return TinyMDP(policy, rewards)


def ends_or_goes_on(p):
    """Decision 0: "x" with probability p returns 1 and goes on, to no effect; "y" ends with 0."""
    policy = {((), ""): {"x": p, "y": 1 - p}, (("x",), ""): {"m": F(1, 100), "n": F(99, 100)}}
    return TinyMDP(policy, {("x",): ONE})


def relative_bias(mdp, chosen, p):
    """Of the first token's gradient, with telescoping credit and the exact value as the root's baseline."""
    options = CreditOptions(gamma=ONE, weight="split", allow_biased=True)
    credit = tree_credit(make_credit("bpo-corrected", options), baseline=p)
    found = expected_gradient(mdp, trees(mdp, chosen), credit)
    parameter = (((), ""), "x")
    return found[parameter] / at_depth(mdp.policy_gradient(ONE), 0)[parameter] - 1


BIASES = [(F(3, 10), F(-3, 10)), (F(1, 2), 0), (F(7, 10), F(3, 10)), (F(9, 10), F(6, 10))]


@pytest.mark.parametrize(("p", "bias"), BIASES)
def test_mean_entropy_of_the_sampled_action_is_biased(p, bias):
    assert relative_bias(two_tokens(p), schedule("entropy", 4, measure="mean"), p) == bias


@pytest.mark.parametrize(("p", "bias"), BIASES)
def test_never_branching_at_the_last_decision_is_biased(p, bias):
    assert relative_bias(ends_or_goes_on(p), schedule("entropy", 4, exclude_last=True), p) == bias


@pytest.mark.parametrize("p", [p for p, _ in BIASES])
def test_branching_at_the_last_decision_too_is_not(p):
    assert relative_bias(ends_or_goes_on(p), schedule("entropy", 4), p) == 0


@pytest.mark.parametrize("p", [p for p, _ in BIASES])
def test_a_threshold_on_the_first_token_is_not(p):
    assert relative_bias(two_tokens(p), at_threshold(0.3, 1, 4), p) == 0
    assert relative_bias(ends_or_goes_on(p), at_threshold(0.3, 1, 4), p) == 0
