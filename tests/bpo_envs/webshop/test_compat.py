"""Upstream's other ways: history before the page, and its choice of goals."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest

import bpo_envs  # noqa: F401  (registers the id)
from bpo_envs.webshop.catalog import load_catalog
from bpo_envs.webshop.compat import GoalSelection, History
from bpo_envs.webshop.env import WebShopEnv
from webshop_goldens import FIXTURES
from wrappers import SnapshotEnv


@pytest.fixture(scope="module")
def recorded():
    return json.loads((FIXTURES / "goal_selection.json").read_text())


def test_a_limit_keeps_the_recorded_goals(recorded):
    goals = load_catalog().goals
    expected = recorded["limit_goals=20 (synthetic): indices into the full order"]
    assert list(GoalSelection(goals, limit=20).goal_indices) == expected


def test_a_filter_keeps_the_recorded_goals(recorded):
    kept = GoalSelection(load_catalog().goals, keep=lambda i, goal: i % 7 == 3).goal_indices
    assert [len(kept), list(kept[:5])] == recorded["filter_goals i%7==3: count and first five"]


def test_draws_are_the_recorded_ones(recorded):
    selection = GoalSelection(load_catalog().goals)
    expected = recorded["construction then 20 x reset(): session id, goal index (synthetic)"]
    assert [list(selection.draw()) for _ in expected] == expected


def test_draws_of_human_goals_are_the_recorded_ones(recorded):
    """The record has every goal of the drawn text: some instructions were written twice."""
    selection = GoalSelection(load_catalog(goals="human").goals)
    for session_id, candidates in recorded[
        "construction then 20 x reset(): session id, goal indices with that text (human)"
    ]:
        drawn_id, goal_idx = selection.draw()
        assert drawn_id == session_id
        assert goal_idx in candidates


def test_the_first_goal_never_comes():
    goals = load_catalog().goals[:2]
    assert {GoalSelection(goals).draw()[1] for _ in range(5)} == {1}


def test_a_filter_that_leaves_nothing_is_an_error():
    with pytest.raises(ValueError, match="no goal is left"):
        GoalSelection(load_catalog().goals, keep=lambda i, goal: False)


def test_history_ends_with_the_current_page():
    env = History(WebShopEnv(split="all"), num_prev_obs=1)
    env.reset(seed=0)
    observation, *_ = env.step("search[lamp]")
    assert observation.endswith(" [SEP] " + env.unwrapped.page())


def test_history_begins_anew_with_each_episode():
    env = History(WebShopEnv(split="all"), 2, 2)
    env.reset(seed=0)
    env.step("search[lamp]")
    env.reset(seed=0)
    observation, *_ = env.step("?")
    start = env.unwrapped.page()
    assert observation == f"{start} [SEP] ? [SEP] {start}"


def test_history_is_part_of_a_snapshot():
    env = SnapshotEnv(History(gym.make("bpo/WebShop-v0"), 2, 2))
    env.reset(seed=0)
    env.step("search[lamp]")
    here = env.snapshot()
    expected = env.step("click[next >]")
    env.reset(seed=1)
    env.restore(here)
    assert env.step("click[next >]") == expected


@pytest.mark.parametrize(
    "state", [None, {}, {"observations": ["a"] * 4, "actions": []}, {"observations": [], "actions": [1]}]
)
def test_a_state_that_is_no_history_is_refused(state):
    with pytest.raises(ValueError, match="History"):
        History(WebShopEnv(), 2, 2).set_state(state)


def test_a_negative_number_is_an_error():
    with pytest.raises(ValueError, match="expected numbers >= 0"):
        History(WebShopEnv(), -1)
