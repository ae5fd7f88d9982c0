"""Telescoping credit with `split` weights has the exact gradient in expectation under predictable schedules.

Target: sum_t E[grad log pi(a_t|s_t) Q_gamma(s_t, a_t)]; rewards are dense and gamma < 1 throughout.
"""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import at_threshold, expected_gradient, tree_credit, trees
from tiny_mdp import at_depth, random_mdp, scaled, selection_example

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

GAMMA = F(3, 4)
BASELINE = F(1, 3)
ONE_TOKEN = random_mdp(5, depth=3)
ENDS_EARLY = random_mdp(5, depth=3, ends_early=True)
SOME_UNCERTAIN = random_mdp(29, depth=3, ends_early=True)  # some states, not the root, reach 0.65 nats
SOME_UNCERTAIN_TWO_TOKENS = random_mdp(2, depth=2, two_tokens=True, ends_early=True)
TWO_TOKENS = random_mdp(5, depth=2, two_tokens=True)
TWO_TOKENS_ENDS_EARLY = random_mdp(5, depth=3, two_tokens=True, ends_early=True)


def telescoping(baseline=BASELINE, weight="split"):
    return tree_credit(make_credit("bpo-corrected", CreditOptions(gamma=GAMMA, weight=weight)), baseline)


def equal(depths, siblings):
    return make_schedule("equal", ScheduleOptions(len(depths), siblings, decisions=depths))


def check(mdp, schedule, baseline=BASELINE):
    found = expected_gradient(mdp, trees(mdp, schedule), telescoping(baseline))
    assert found == mdp.policy_gradient(GAMMA)


@pytest.mark.parametrize(
    ("mdp", "depths", "siblings"),
    [
        (ONE_TOKEN, (1,), 2),
        (ONE_TOKEN, (2,), 4),
        (ONE_TOKEN, (1, 2), 3),
        (ONE_TOKEN, (1, 2), 4),
        (ONE_TOKEN, (0, 2), 3),
        (ONE_TOKEN, (0, 1, 2), 2),
        (ENDS_EARLY, (1,), 4),
        (ENDS_EARLY, (1, 2), 4),
        (ENDS_EARLY, (0, 1, 2), 3),
        (TWO_TOKENS, (1,), 4),
        (TWO_TOKENS, (0, 1), 2),
        (TWO_TOKENS_ENDS_EARLY, (1, 2), 2),
        (TWO_TOKENS_ENDS_EARLY, (1,), 3),
    ],
)
def test_fixed_decisions(mdp, depths, siblings):
    check(mdp, equal(depths, siblings))


@pytest.mark.full
@pytest.mark.parametrize(
    ("mdp", "depths", "siblings"),
    [
        (ONE_TOKEN, (0, 1, 2), 4),
        (ENDS_EARLY, (0, 1, 2), 4),
        (TWO_TOKENS, (0, 1), 3),
        (TWO_TOKENS_ENDS_EARLY, (0, 1, 2), 2),
        (TWO_TOKENS_ENDS_EARLY, (1, 2), 3),
    ],
)
def test_fixed_decisions_larger(mdp, depths, siblings):
    check(mdp, equal(depths, siblings))


@pytest.mark.parametrize(
    ("mdp", "points", "siblings", "root"),
    [
        (selection_example(), 1, 4, False),
        (SOME_UNCERTAIN, 1, 4, False),
        (SOME_UNCERTAIN, 2, 2, False),
        (SOME_UNCERTAIN, 2, 3, True),
        (SOME_UNCERTAIN_TWO_TOKENS, 1, 3, False),
        (SOME_UNCERTAIN_TWO_TOKENS, 2, 2, True),
    ],
)
def test_first_token_entropy_threshold(mdp, points, siblings, root):
    schedule = at_threshold(0.65, points, siblings, root)
    shapes = {tuple(point.depth for point in tree.branch_points) for tree, _ in trees(mdp, schedule)}
    assert len(shapes) > 1  # the threshold does tell backbones apart
    check(mdp, schedule)


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.7, 1.0])
def test_hazard(rate):
    """The enumeration gives decision t the key (0, t), one outcome of the draws; each rate cuts it anew."""
    check(ENDS_EARLY, make_schedule("hazard", ScheduleOptions(2, 3, spacing=1, rate=rate)))


@pytest.mark.parametrize("baseline", [None, F(-2), F(7, 3)])
def test_any_baseline_of_the_root_will_do(baseline):
    check(ONE_TOKEN, equal((1, 2), 2), baseline)


def batch_gradient(mdp, others):
    """Expected gradient of a tree whose batch holds one more, enumerated as well."""
    schedule = equal((1,), 2)
    credit = make_credit("bpo-corrected", CreditOptions(gamma=GAMMA, weight="split"))
    total = {}
    for other, probability in others:

        def call(tree, other=other):
            credit.load_state_dict({"running": {}})
            return credit([tree, other])[0]

        for parameter, value in expected_gradient(mdp, trees(mdp, schedule), call).items():
            total[parameter] = total.get(parameter, F(0)) + probability * value
    return {parameter: value for parameter, value in total.items() if value}


@pytest.mark.parametrize("task_id", ["task", "another"])
def test_baselines_from_the_rest_of_the_batch(task_id):
    mdp = random_mdp(7, depth=2)
    others = list(trees(random_mdp(7 if task_id == "task" else 8, depth=2), equal((1,), 2), task_id=task_id))
    assert batch_gradient(mdp, others) == mdp.policy_gradient(GAMMA)


def test_pair_weights_count_each_depth_once_for_every_branch_alive_there():
    siblings = 3
    found = expected_gradient(
        ONE_TOKEN, trees(ONE_TOKEN, equal((1, 2), siblings)), telescoping(weight="pair")
    )
    target = ONE_TOKEN.policy_gradient(GAMMA)
    for depth, alive in ((0, 1), (1, 1 + 2), (2, 1 + 2 + 2)):
        assert at_depth(found, depth) == scaled(at_depth(target, depth), F(alive))


@pytest.mark.parametrize("fresh", [False, True])
def test_with_a_post_hoc_schedule_it_is_biased_and_fresh_siblings_do_not_mend_it(fresh):
    mdp = selection_example()
    schedule = make_schedule("entropy", ScheduleOptions(1, 2, spacing=0, fresh_siblings=fresh))
    options = CreditOptions(gamma=GAMMA, weight="split", allow_biased=True)
    credit = tree_credit(make_credit("bpo-corrected", options), BASELINE)
    assert expected_gradient(mdp, trees(mdp, schedule), credit) != mdp.policy_gradient(GAMMA)
