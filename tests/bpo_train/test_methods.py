"""Methods by name: which credit goes with which schedule, and what that does to the trees' shape."""

from __future__ import annotations

import pytest

from bpo_train.collect.schedule import ScheduleOptions
from bpo_train.credit import CreditOptions
from bpo_train.methods import METHODS, build

OPTIONS = ScheduleOptions(branch_points=2, siblings=4)


def made(name: str, schedule: str = "", options: ScheduleOptions = OPTIONS, **credit):
    return build(name, schedule, 7, options, CreditOptions(**credit))


@pytest.mark.parametrize(
    ("name", "credit", "schedule"),
    [
        ("bpo", "bpo", "entropy"),
        ("bpo-corrected", "bpo-corrected", "entropy-threshold"),
        ("rloo", "rloo", "root"),
        ("grpo", "grpo", "root"),
        ("reinforce", "reinforce", "root"),
    ],
)
def test_a_method_is_a_credit_with_its_schedule(name, credit, schedule):
    found = made(name)
    assert (found[0].name, found[1].name) == (credit, schedule)


@pytest.mark.parametrize("name", ["rloo", "grpo", "reinforce"])
def test_methods_that_do_not_branch_get_their_number_of_returns(name):
    _, schedule = made(name)
    assert (schedule.options.branch_points, schedule.options.siblings) == (1, 7)


def test_the_corrected_method_branches_at_the_root_too():
    assert made("bpo-corrected")[1].options.root
    assert not made("bpo")[1].options.root


def test_another_schedule_can_be_asked_for():
    _, schedule = made("bpo", "random")
    assert schedule.name == "random"
    assert schedule.options == OPTIONS


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"bpo-corrected"}))
def test_an_entropy_measure_concerns_only_schedules_that_read_it(name):
    # a recipe for bpo may ask for `max`; the methods it is compared with must run from the same recipe
    made(name, options=ScheduleOptions(measure="max"))


def test_the_corrected_method_needs_a_measure_known_before_the_draw():
    with pytest.raises(ValueError, match="use the measure 'first'"):
        made("bpo-corrected", options=ScheduleOptions(measure="max"))


def test_combinations_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="share only the prompt"):
        made("rloo", "entropy")
    with pytest.raises(ValueError, match="is biased with the post-hoc schedule"):
        made("bpo-corrected", "entropy")
    made("bpo-corrected", "entropy", allow_biased=True)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown method 'ppo'; expected one of bpo, bpo-corrected"):
        made("ppo")
    with pytest.raises(ValueError, match="no schedule is called 'often'"):
        made("bpo", "often")


def test_a_number_of_returns_sets_the_siblings_of_methods_that_branch():
    _, schedule = build("bpo", "", 9, ScheduleOptions(branch_points=4), CreditOptions())
    assert (schedule.options.branch_points, schedule.options.siblings) == (4, 3)  # 9 = 1 + 4 (3 - 1)


@pytest.mark.parametrize("returns", [3, 8])
def test_a_budget_that_m_and_k_cannot_make_names_the_nearest(returns):
    with pytest.raises(
        ValueError, match=f"no K makes N = {returns} returns with M = 4: the nearest budgets are"
    ):
        build("bpo", "", returns, ScheduleOptions(branch_points=4), CreditOptions())


def test_another_schedule_than_its_own_is_not_made_to_branch_at_the_root():
    _, schedule = made("bpo-corrected", "equal", ScheduleOptions(branch_points=2, decisions=(3, 5)))
    assert not schedule.options.root


@pytest.mark.parametrize("option", [{"prefix": "rows"}, {"suffix": "none"}])
@pytest.mark.parametrize("method", ["bpo-corrected", "rloo", "grpo"])
def test_choices_within_bpo_are_refused_elsewhere(method, option):
    with pytest.raises(ValueError, match=f"{method} has no such choice"):
        made(method, **option)
    made("bpo", **option)
