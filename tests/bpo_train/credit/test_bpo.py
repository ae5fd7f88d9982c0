"""The paper's credit on trees whose numbers can be worked out by hand."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_train.credit import CreditOptions, make_credit
from bpo_train.credit.bpo import propagated
from bpo_train.tree import BranchPoint, Decision, RolloutTree


def credit_of(tree, name="bpo", **options):
    (credit,) = make_credit(name, CreditOptions(**options))([tree])
    return credit


@pytest.fixture
def two_points(grow):
    """Backbone of 5 decisions, return 1. K = 3 at depth 1 (others 0 and 0.5), K = 2 at depth 3 (other 0.2).

    Eq 4 at depth 1: backbone 1 - 0.25 = 0.75, siblings 0 - 0.75 = -0.75 and 0.5 - 0.5 = 0.
    Eq 4 at depth 3: backbone 1 - 0.2 = 0.8, sibling -0.8.
    """
    return grow(
        [F(0), F(0), F(0), F(0), F(1)],
        {1: [[F(0), F(0)], [F(0), F(1, 2)]], 3: [[F(0), F(1, 5)]]},
    )


def test_eq_5_adds_the_discounted_local_advantages_at_and_after_a_step():
    local = {1: F(3, 4), 3: F(4, 5)}
    assert propagated(local, 0, F(1, 2)) == F(1, 2) * F(3, 4) + F(1, 8) * F(4, 5)
    assert propagated(local, 3, F(1, 2)) == F(4, 5)
    assert propagated(local, 4, F(1, 2)) == 0


def test_a_backbone_gets_eq_5_before_and_inherits_after_its_branch_points(two_points):
    credit = credit_of(two_points, gamma=F(1), propagation=F(1, 2))
    assert credit.advantages[0] == [
        F(1, 2) * F(3, 4) + F(1, 8) * F(4, 5),  # prefix: Eq 5 over both
        F(3, 4) + F(1, 4) * F(4, 5),  # the first branch point: its own and Eq 5 over the second
        F(3, 4) + F(1, 2) * F(4, 5),  # between: inherited from the first, flat, and Eq 5 over the second
        F(4, 5),  # the second branch point
        F(4, 5),  # after: inherited
    ]


def test_a_sibling_carries_its_local_advantage_flat(two_points):
    credit = credit_of(two_points, gamma=F(1), propagation=F(1, 2))
    assert credit.advantages[1:] == [[F(-3, 4)] * 2, [0, 0], [F(-4, 5)] * 2]


def test_suffix_none_leaves_what_follows_a_branch_point_without_credit(two_points):
    credit = credit_of(two_points, gamma=F(1), propagation=F(1, 2), suffix="none")
    assert credit.advantages[0] == [
        F(1, 2) * F(3, 4) + F(1, 8) * F(4, 5),
        F(3, 4) + F(1, 4) * F(4, 5),
        F(1, 2) * F(4, 5),
        F(4, 5),
        0,
    ]
    assert credit.advantages[1:] == [[F(-3, 4), 0], [0, 0], [F(-4, 5), 0]]


def test_pair_weights_are_the_default_and_split_divides_by_k(two_points):
    assert credit_of(two_points).weights[0] == [1, 1, 1, 1, 1]
    split = credit_of(two_points, weight="split").weights
    assert split[0] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert split[1] == pytest.approx([1 / 3] * 2)
    assert split[3] == pytest.approx([1 / 6] * 2)


def test_rows_cancel_the_prefix_of_one_branch_point_identically(grow):
    tree = grow([F(0), F(0), F(1)], {2: [[F(1, 2)], [F(0)], [F(1, 3)]]})
    rows = credit_of(tree, gamma=F(1), propagation=F(1, 2), prefix="rows").advantages
    assert rows[0][:2] == [0, 0]
    assert rows[0][2] == 1 - F(5, 18)  # the branch point itself is no shared step


def test_rows_count_a_member_once_for_each_of_its_leaves(two_points):
    rows = credit_of(two_points, gamma=F(1), propagation=F(1, 2), prefix="rows").advantages
    # The backbone's action at depth 1 is in two rows (its own and the sibling's of depth 3): 2 x 0.75; the
    # group at depth 3 cancels from it. At depth 0 the group at depth 1 adds lambda (2 x 0.75 - 0.75 + 0).
    assert rows[0] == [F(1, 2) * F(3, 4), 2 * F(3, 4), 2 * F(3, 4), F(4, 5), F(4, 5)]


def test_dense_rewards_are_discounted_from_the_branch_point(grow):
    tree = grow([F(9), F(1), F(2)], {1: [[F(0), F(4)]]})
    # G_1 = 1 + 2/2 = 2 and 0 + 4/2 = 2: a degenerate group, whatever was earned before it
    assert credit_of(tree, gamma=F(1, 2)).advantages == [[0, 0, 0], [0, 0]]


def test_nested_branch_points_continue_the_path_of_their_sibling(grow, fork):
    tree = grow([F(0), F(1)], {0: [[F(0), F(0)]]})
    fork(tree, 1, 1, [[F(1, 2)]])
    # group at the root: 1 and 0, so +1 and -1; group on branch 1 at depth 1: 0 and 0.5, so -0.5 and +0.5
    credit = credit_of(tree, gamma=F(1), propagation=F(1, 2))
    assert credit.advantages == [[1, 1], [-1 + F(1, 2) * F(-1, 2), F(-1, 2)], [F(1, 2)]]


def test_extra_backbones_are_siblings_at_the_root(grow):
    tree = grow([F(1), F(1)], extras=[[F(0), F(0)], [F(0), F(1)]])
    assert credit_of(tree, gamma=F(1)).advantages == [[F(3, 2)] * 2, [F(-3, 2)] * 2, [0, 0]]


def test_fresh_siblings_leave_the_backbone_out(grow):
    tree = grow([F(0), F(7)], {1: [[F(1)], [F(0)]]})
    tree.branch_points[0].fresh = True
    credit = credit_of(tree, weight="split")
    assert credit.advantages == [[0, 0], [1], [-1]]
    assert credit.weights == [[1, 1], [1 / 2], [1 / 2]]


def test_a_fork_that_lost_its_group_earns_nothing(grow):
    tree = grow([F(0), F(7)], {1: [[F(1)]]})
    tree.branch_points[0].fresh = True
    assert credit_of(tree).advantages == [[0, 0], [0]]


def test_a_tree_without_branch_points_earns_nothing(grow):
    assert credit_of(grow([1.0, 1.0])).advantages == [[0, 0]]


rewards = st.lists(st.fractions(0, 1, max_denominator=10), min_size=2, max_size=2)


@given(st.lists(rewards, min_size=1, max_size=5), st.sampled_from(["pair", "split"]))
def test_with_one_root_point_and_k_equal_n_bpo_is_rloo(rollouts, weight):
    tree = tree_of(rollouts[0], {0: rollouts[1:]})
    options = {"gamma": F(9, 10), "propagation": F(1, 2), "weight": weight}
    assert credit_of(tree, "bpo", **options) == credit_of(tree, "rloo", **options)


@given(st.lists(st.fractions(0, 1, max_denominator=10), min_size=4, max_size=4), st.integers(-3, 3))
def test_a_constant_added_to_all_returns_changes_nothing(last, constant):
    def tree(shift):
        a, b, c, d = (value + shift for value in last)
        return tree_of([0, 0, a], {1: [[0, b], [0, c]], 2: [[d]]})

    assert credit_of(tree(0), gamma=F(1)) == credit_of(tree(constant), gamma=F(1))


def tree_of(backbone, siblings):
    """A tree from rewards, without a fixture: hypothesis draws many in one test."""
    tree = RolloutTree("task")
    fill(tree.backbone, backbone)
    for depth, forks in siblings.items():
        indices = []
        for values in forks:
            indices.append(tree.add_fork(0, depth))
            fill(tree.branches[indices[-1]], values)
        tree.branch_points.append(BranchPoint(0, depth, indices))
    return tree


def fill(branch, values):
    branch.decisions = [Decision([], [0], [0.0], None, "a", value) for value in values]
