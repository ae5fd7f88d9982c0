"""Telescoping credit on trees whose numbers can be worked out by hand: dense rewards, gamma = 1/2."""

from __future__ import annotations

import json
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_train.credit import CreditOptions, make_credit
from bpo_train.tree import BranchPoint, Decision, RolloutTree

HALF = CreditOptions(gamma=F(1, 2))
ONE = CreditOptions(gamma=F(1))


@pytest.fixture
def dense(grow):
    """Backbone 1, 2, 4, 8; K = 2 at depth 1 (other 0, 0, 8) and K = 3 at depth 3 (others 0 and 4).

    G_3: 8, 0, 4, mean 4.   G_1: backbone 2 + 4/2 + 8/4 = 6, sibling 8/4 = 2, mean 4.
    """
    return grow([F(1), F(2), F(4), F(8)], {1: [[F(0), F(0), F(8)]], 3: [[F(0)], [F(4)]]})


def test_backbone_steps_telescope_between_branch_points(dense):
    (credit,) = make_credit("bpo-corrected", HALF)([dense])
    assert credit.advantages[0] == [
        1 + F(1, 2) * 4,  # to the first branch point; no baseline known
        (2 + F(4, 2) + F(1, 4) * 4) - 2,  # the sibling's G_1 = 2
        (4 + F(1, 2) * 4) - 2 * (2 - 2),  # gamma^-1 [2 - r_1]
        8 - F(0 + 4, 2),  # no later branch point: the return-to-go; the siblings' mean G_3
    ]


def test_siblings_are_compared_with_all_other_members(dense):
    (credit,) = make_credit("bpo-corrected", HALF)([dense])
    # G_1 = 2 against the backbone's 6; a step on, the same difference over gamma
    assert credit.advantages[1] == [2 - 6, 2 * (2 - 6), 4 * (2 - 6)]
    assert credit.advantages[2:] == [[0 - F(8 + 4, 2)], [4 - F(8 + 0, 2)]]


def test_at_gamma_one_siblings_get_eq_4_with_inherit(dense):
    (telescoping,) = make_credit("bpo-corrected", ONE)([dense])
    (paper,) = make_credit("bpo", CreditOptions(gamma=F(1), propagation=F(1, 2)))([dense])
    assert telescoping.advantages[1:] == paper.advantages[1:]


def test_with_one_root_point_it_is_rloo(grow):
    tree = grow([F(0), F(1)], {0: [[F(0), F(1, 2)], [F(1, 3)]]})
    (telescoping,) = make_credit("bpo-corrected", ONE)([tree])
    (rloo,) = make_credit("rloo", ONE)([tree])
    assert telescoping == rloo


def test_nested_branch_points_telescope_on_their_own_branch(grow, fork):
    tree = grow([F(1), F(1)], {0: [[F(2), F(2)]]})
    fork(tree, 1, 1, [[F(6)]])
    (credit,) = make_credit("bpo-corrected", ONE)([tree])
    # branch 1 at depth 0: 2 + mean(2, 6) against the backbone's 2; at depth 1: 2 against 6
    assert credit.advantages == [[2 - 4, 2 - 4], [2 + 4 - 2, 2 - 6], [6 - 2]]


def test_the_baseline_accounts_for_rewards_already_earned(grow):
    credit = make_credit("bpo-corrected", HALF)
    credit.load_state_dict({"running": {"task": [1, F(2)]}})
    (found,) = credit([grow([F(1), F(4)])])
    assert found.advantages == [[(1 + 2) - 2, 4 - 2 * (2 - 1)]]


def test_other_trees_of_the_prompt_are_the_first_choice_of_baseline(grow):
    credit = make_credit("bpo-corrected", ONE)
    credit.load_state_dict({"running": {"task": [1, 9]}})
    trees = [grow([F(1)]), grow([F(2)]), grow([F(0), F(6)], {1: [[F(2)]]}), grow([F(9)], task_id="other")]
    # root values: 1, 2, mean(6, 2) = 4
    found = credit(trees)
    assert [c.advantages[0][0] for c in found[:3]] == [1 - 3, 2 - F(5, 2), 4 - F(3, 2)]


def test_the_running_mean_is_the_second_choice(grow):
    credit = make_credit("bpo-corrected", ONE)
    credit([grow([F(1)])])
    credit([grow([F(2)])])
    found, _ = credit([grow([F(5)]), grow([F(7)], task_id="other")])
    assert found.advantages == [[5 - F(3, 2)]]


def test_the_other_prompts_of_the_batch_are_the_third_choice(grow):
    credit = make_credit("bpo-corrected", ONE)
    found = credit([grow([F(1)], task_id="a"), grow([F(2)], task_id="b"), grow([F(6)], task_id="c")])
    assert [c.advantages for c in found] == [[[1 - 4]], [[2 - F(7, 2)]], [[6 - F(3, 2)]]]


def test_without_any_other_tree_there_is_no_baseline(grow):
    (found,) = make_credit("bpo-corrected", HALF)([grow([F(1), F(4)])])
    assert found.advantages == [[3, 4]]


def test_a_batch_is_credited_before_it_moves_its_own_baseline(grow):
    credit = make_credit("bpo-corrected", ONE)
    credit([grow([F(1)])])
    (found,) = credit([grow([F(5)])])
    assert found.advantages == [[5 - 1]]


def test_the_running_mean_forgets_slowly(grow):
    credit = make_credit("bpo-corrected", ONE)
    for _ in range(50):
        credit([grow([F(0)])])
    credit([grow([F(1)])])
    assert credit.running["task"] == (10, F(1, 10))


def test_the_baseline_survives_a_checkpoint(grow):
    credit, restored = make_credit("bpo-corrected"), make_credit("bpo-corrected")
    credit([grow([0.25])])
    restored.load_state_dict(json.loads(json.dumps(credit.state_dict())))
    assert restored([grow([1.0])]) == credit([grow([1.0])])


def test_the_backbone_ignores_extra_backbones(grow):
    credit = make_credit("bpo-corrected", ONE)
    credit.load_state_dict({"running": {"task": [1, F(1, 2)]}})
    (found,) = credit([grow([F(1)], extras=[[F(4)], [F(7)]])])
    assert found.advantages == [[1 - F(1, 2)], [4 - F(1 + 7, 2)], [7 - F(1 + 4, 2)]]


def test_scheduled_root_siblings_ignore_extra_backbones(grow):
    tree = grow([F(1)], {0: [[F(3)]]}, extras=[[F(8)]])
    (found,) = make_credit("bpo-corrected", ONE)([tree])
    assert found.advantages == [[1 - 3], [3 - 1], [8 - 2]]


def test_extra_backbones_split_no_weight(grow):
    tree = grow([F(1)], {0: [[F(3)]]}, extras=[[F(8)]])
    (found,) = make_credit("bpo-corrected", CreditOptions(weight="split"))([tree])
    assert found.weights == [[0.5], [0.5], [1.0]]


def test_a_point_that_lost_its_siblings_is_no_branch_point(grow):
    tree = grow([F(0), F(1)], {1: [[F(5)]]})
    tree.branches.pop()
    tree.branch_points[0].siblings = []
    (found,) = make_credit("bpo-corrected", ONE)([tree])
    assert found.advantages == [[1, 1]]


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=3), st.floats(0.1, 1), st.integers(2, 6))
def test_equal_returns_earn_exactly_zero_in_floating_point(rewards, gamma, siblings):
    tree = RolloutTree("task")
    tree.backbone.decisions = decisions(rewards)
    for depth in (0, 2):
        indices = []
        for _ in range(siblings - 1):
            indices.append(tree.add_fork(0, depth))
            tree.branches[indices[-1]].decisions = decisions(rewards[depth:])
        tree.branch_points.append(BranchPoint(0, depth, indices))
    (found,) = make_credit("bpo-corrected", CreditOptions(gamma=gamma))([tree])
    assert not any(value for own in found.advantages for value in own)


def decisions(rewards):
    return [Decision([], [0], [0.0], None, "a", reward) for reward in rewards]
