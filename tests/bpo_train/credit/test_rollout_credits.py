"""RLOO, GRPO and REINFORCE on rollouts that share only the prompt, and the registry."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_train.credit import CREDITS, CreditOptions, make_credit
from bpo_train.credit.grpo import group_relative


def test_rloo_gives_each_decision_of_a_rollout_its_leave_one_out_advantage(grow):
    tree = grow([F(0), F(1)], {0: [[F(0)], [F(1, 2)]]})
    (credit,) = make_credit("rloo", CreditOptions(gamma=F(1)))([tree])
    assert credit.advantages == [[F(3, 4), F(3, 4)], [F(-3, 4)], [0]]


def test_rloo_compares_all_rollouts_however_they_came_about(grow):
    scheduled, extra = grow([1.0], {0: [[0.0], [0.5]]}), grow([1.0], extras=[[0.0], [0.5]])
    first, second = make_credit("rloo")([scheduled, extra])
    assert first == second


def test_a_lone_rollout_earns_nothing_from_comparison(grow):
    for name in ("rloo", "grpo"):
        (credit,) = make_credit(name)([grow([1.0, 1.0])])
        assert credit.advantages == [[0, 0]]


def test_grpo_divides_by_the_deviation_of_the_group():
    # mean 1/2, squared distances 1/4, 1/4, 1/4, 1/4: variance 1/3 with K - 1 = 3 in the denominator
    assert group_relative([1, 0, 1, 0], "std", 0) == pytest.approx([0.75**0.5, -(0.75**0.5)] * 2)
    assert group_relative([1, 0, 1, 0], "std", 1.0) == pytest.approx(
        [0.5 / (3**-0.5 + 1), -0.5 / (3**-0.5 + 1)] * 2
    )


def test_grpo_without_the_deviation_is_rloo_scaled_by_k_minus_1_over_k(grow):
    tree = grow([F(1)], {0: [[F(0)], [F(1, 3)], [F(1, 5)]]})
    (rloo,) = make_credit("rloo", CreditOptions(gamma=F(1)))([tree])
    (grpo,) = make_credit("grpo", CreditOptions(gamma=F(1), scale="none"))([tree])
    assert grpo.advantages == [[a * F(3, 4) for a in own] for own in rloo.advantages]


@given(st.floats(-10, 10), st.integers(1, 8))
def test_grpo_gives_a_degenerate_group_exactly_zero(value, size):
    assert group_relative([value] * size, "std", 1e-4) == [0.0] * size


def test_reinforce_gives_each_decision_its_return_to_go(grow):
    tree = grow([F(1), F(2), F(4)], {0: [[F(0), F(2)]]})
    (credit,) = make_credit("reinforce", CreditOptions(gamma=F(1, 2)))([tree])
    assert credit.advantages == [[1 + 1 + 1, 2 + 2, 4], [1, 2]]


def test_split_weights_average_over_the_rollouts(grow):
    tree = grow([1.0, 1.0], {0: [[1.0], [0.0], [0.0]]})
    for name in ("rloo", "grpo", "reinforce"):
        (credit,) = make_credit(name, CreditOptions(weight="split"))([tree])
        assert credit.weights == [[0.25, 0.25], [0.25], [0.25], [0.25]]


@pytest.mark.parametrize("name", ["rloo", "grpo", "reinforce"])
def test_a_tree_that_branches_later_is_an_error(name, grow):
    with pytest.raises(ValueError, match="branch 1 of task forks at decision 1: use the schedule `root`"):
        make_credit(name)([grow([0.0, 1.0], {1: [[0.0]]})])


def test_an_unknown_credit_is_answered_with_the_names():
    with pytest.raises(ValueError, match="'ppo2': choose one of bpo, bpo-corrected, grpo"):
        make_credit("ppo2")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"suffix": "some"}, "suffix is 'some': expected one of inherit, none"),
        ({"prefix": "leaf"}, "prefix is 'leaf'"),
        ({"weight": "half"}, "weight is 'half'"),
        ({"scale": "max"}, "scale is 'max'"),
        ({"gamma": 0.0}, "gamma is 0.0"),
        ({"propagation": 1.5}, "propagation"),
    ],
)
def test_wrong_options_are_named(option, message):
    with pytest.raises(ValueError, match=message):
        CreditOptions(**option)


@pytest.mark.parametrize("name", sorted(CREDITS))
def test_state_round_trips_and_foreign_state_is_refused(name, grow):
    credit = make_credit(name)
    credit([grow([1.0])])
    make_credit(name).load_state_dict(credit.state_dict())
    if not credit.state_dict():
        with pytest.raises(ValueError, match="keeps no state"):
            credit.load_state_dict({"running": {}})
