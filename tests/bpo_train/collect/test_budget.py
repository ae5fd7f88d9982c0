"""Budgets: N = 1 + M (K - 1), and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_train.collect.budget import branch_points_for, forks_per_point, returns_per_tree, siblings_for


@pytest.mark.parametrize(
    ("points", "siblings", "returns"),
    [(2, 4, 7), (4, 4, 13), (12, 2, 13), (2, 8, 15), (1, 16, 16), (0, 1, 1)],  # the paper's sweeps
)
def test_returns_of_the_papers_shapes(points, siblings, returns):
    assert returns_per_tree(points, siblings) == returns


def test_fresh_siblings_cost_one_more_each():
    assert returns_per_tree(2, 4, fresh=True) == 9
    assert forks_per_point(4, fresh=True) == 4


@given(st.integers(1, 20), st.integers(2, 20), st.booleans())
def test_the_inverses_invert(points, siblings, fresh):
    returns = returns_per_tree(points, siblings, fresh)
    assert siblings_for(returns, points, fresh) == siblings
    assert branch_points_for(returns, siblings, fresh) == points


def test_a_budget_no_k_reaches_names_its_neighbours():
    with pytest.raises(ValueError, match="N = 8 returns with M = 2: the nearest budgets are 7 and 9"):
        siblings_for(8, 2)


def test_a_budget_too_small_for_m_names_the_least():
    with pytest.raises(ValueError, match="nearest budgets are 5 and 9"):
        siblings_for(3, 4)


def test_a_budget_no_m_reaches_names_its_neighbours():
    with pytest.raises(ValueError, match="N = 8 returns with K = 4: the nearest budgets are 7 and 10"):
        branch_points_for(8, 4)
    with pytest.raises(ValueError, match="nearest budgets are 4 and 7"):
        branch_points_for(2, 4)


def test_one_sibling_makes_no_group():
    with pytest.raises(ValueError, match="K = 1 siblings at 2 branch points: a group needs at least 2"):
        returns_per_tree(2, 1)


def test_branch_points_are_not_negative():
    with pytest.raises(ValueError, match="M = -1"):
        returns_per_tree(-1, 4)
