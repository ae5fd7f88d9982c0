"""Eq 4 and who is compared with whom."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_train.credit.group import (
    discounted,
    groups_at,
    leave_one_out,
    membership,
    step_weights,
    usable_points,
)

exact = st.fractions(min_value=-5, max_value=5, max_denominator=20)
groups = st.lists(exact, min_size=2, max_size=8)


def test_eq_4_compares_each_return_with_the_mean_of_the_others():
    # 1 - (0 + 0.5)/2, 0 - (1 + 0.5)/2, 0.5 - (1 + 0)/2
    assert leave_one_out([1.0, 0.0, 0.5]) == [0.75, -0.75, 0.0]


def test_eq_4_needs_two():
    with pytest.raises(ValueError, match="K >= 2"):
        leave_one_out([1.0])


@given(groups)
def test_eq_4_sums_to_zero_in_a_group(returns):
    assert sum(leave_one_out(returns)) == 0


@given(groups, exact)
def test_eq_4_ignores_a_constant_added_to_all_returns(returns, constant):
    assert leave_one_out([value + constant for value in returns]) == leave_one_out(returns)


@given(groups, exact)
def test_eq_4_scales_with_the_returns(returns, factor):
    assert leave_one_out([factor * value for value in returns]) == [
        factor * a for a in leave_one_out(returns)
    ]


@given(st.floats(-1e6, 1e6), st.integers(2, 16))
def test_a_degenerate_group_earns_exactly_zero_in_floating_point(value, size):
    assert leave_one_out([value] * size) == [0.0] * size


def test_returns_are_discounted_per_decision():
    assert discounted([Fraction(1), Fraction(2), Fraction(4)], Fraction(1, 2)) == 1 + 1 + 1


def test_a_point_that_lost_its_siblings_is_ignored(grow):
    tree = grow([0.0, 1.0], {1: [[0.5]]})
    tree.branch_points[0].siblings = []
    assert usable_points(tree) == []


def test_a_point_with_one_fresh_sibling_left_is_ignored(grow):
    tree = grow([0.0, 1.0], {1: [[0.5]]})
    assert usable_points(tree) != []
    tree.branch_points[0].fresh = True
    assert usable_points(tree) == []


def test_scheduled_siblings_and_extra_backbones_are_one_group_at_the_root(grow):
    tree = grow([1.0], {0: [[2.0], [3.0]]}, extras=[[4.0]])
    assert groups_at(tree.branch_points) == {(0, 0): [0, 1, 2, 3]}


def test_a_decision_in_two_groups_is_an_error(grow, fork):
    tree = grow([0.0, 1.0], {1: [[0.5]]})
    fork(
        tree, 1, 1, [[0.0]]
    )  # at the first decision of branch 1, which is a member of the backbone's group there
    with pytest.raises(ValueError, match="decision 1 of branch 1 belongs to two groups"):
        membership(groups_at(tree.branch_points))


def test_pair_weights_are_one_each(grow):
    tree = grow([0.0, 0.0, 1.0], {1: [[0.0, 0.5]] * 3})
    weights = step_weights(tree, groups_at(tree.branch_points), "pair")
    assert weights == [[1, 1, 1], [1, 1], [1, 1], [1, 1]]


def test_split_weights_divide_at_each_branch_point_at_or_above(grow):
    tree = grow([0.0] * 4, {1: [[0.0] * 3], 2: [[0.0] * 2] * 3})  # K = 2 at depth 1, K = 4 at depth 2
    weights = step_weights(tree, groups_at(tree.branch_points), "split")
    assert weights[0] == [1, 1 / 2, 1 / 8, 1 / 8]
    assert weights[1] == [1 / 2] * 3
    assert weights[2:] == [[1 / 8] * 2] * 3


def test_split_weights_of_all_leaves_sum_to_one(grow, fork):
    tree = grow([0.0] * 4, {0: [[0.0] * 4] * 2, 2: [[0.0] * 2]})
    fork(tree, 1, 3, [[0.0]])  # a nested branch point, on the first sibling at the root
    weights = step_weights(tree, groups_at(tree.branch_points), "split")
    assert sum(own[-1] for own in weights) == pytest.approx(1)
