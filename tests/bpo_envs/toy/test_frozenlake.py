"""`bpo/FrozenLakeText-v0`: Gymnasium's lake, told in words."""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import MAPS

import bpo_envs  # noqa: F401  (registers the ids)
from bpo_envs.toy.frozenlake import ACTIONS, FrozenLakeTextEnv, best_actions
from bpo_envs.toy.game import NoisyExpert

FIRM = {"is_slippery": False}


def texts(env, actions):
    return [env.step(action)[0] for action in actions]


def test_an_episode_reads_as_documented():
    env = FrozenLakeTextEnv(**FIRM)
    assert env.reset(seed=0)[0] == (
        "walk to the goal in row 4, column 4; a hole ends the walk\n"
        "row 1, column 1: left edge, down ice, right ice, up edge\n"
    )
    assert texts(env, ["down", "down", "right", "right", "down"])[:2] == [
        "row 2, column 1: left edge, down ice, right hole, up ice\n",
        "row 3, column 1: left edge, down hole, right ice, up ice\n",
    ]
    text, reward, terminated, truncated, info = env.step("right")
    assert (text, reward, terminated, truncated) == ("you reach the goal\n", 1.0, True, False)
    assert (info["won"], info["score"], info["admissible_actions"]) == (True, 1.0, [])


def test_a_hole_ends_the_walk():
    env = FrozenLakeTextEnv(**FIRM)
    env.reset(seed=0)
    env.step("down")
    text, reward, terminated, _, info = env.step("right")
    assert (text, reward, terminated, info["won"]) == ("you fall into a hole\n", 0.0, True, False)


def test_the_map_shows_the_walker():
    env = FrozenLakeTextEnv(view="map", **FIRM)
    assert env.reset(seed=0)[0].endswith("\n@FFF\nFHFH\nFFFH\nHFFG\n")
    assert texts(env, ["Down"]) == ["SFFF\n@HFH\nFFFH\nHFFG\n"]


@pytest.mark.parametrize("map_name", ["4x4", "8x8"])
@pytest.mark.parametrize("slippery", [True, False])
def test_the_same_seed_and_actions_walk_as_in_gymnasiums_lake(map_name, slippery):
    ours = gym.make("bpo/FrozenLakeText-v0", map_name=map_name, is_slippery=slippery)
    real = gym.make("FrozenLake-v1", map_name=map_name, is_slippery=slippery, max_episode_steps=100)
    rng = np.random.default_rng(0)
    for seed in range(20):
        ours.reset(seed=seed)
        cell, _ = real.reset(seed=seed)
        done = False
        while not done:
            assert ours.unwrapped.moment.cell == cell
            action = int(rng.integers(4))
            cell, reward, terminated, truncated, _ = real.step(action)
            assert ours.step(ACTIONS[action])[1:4] == (reward, terminated, truncated)
            done = terminated or truncated


def test_forks_of_one_snapshot_slip_alike_and_the_seed_decides_how():
    env = gym.make("bpo/FrozenLakeText-v0")
    env.reset(seed=0)
    here = env.snapshot()
    walks = []
    for _ in range(3):
        env.restore(here)
        walks.append(texts(env, ["up"] * 6))
    assert walks[0] == walks[1] == walks[2]
    starts = set()
    for seed in range(10):
        env.reset(seed=seed)
        starts.add(tuple(texts(env, ["up"] * 6)))
    assert len(starts) > 3


def success(lake, slippery):
    """Probability of coming to the goal by the expert's actions: solves V = R + P V on Gymnasium's table."""
    table = FrozenLakeTextEnv(desc=list(lake), is_slippery=slippery)
    table.reset(seed=0)
    transitions = table.lake.P
    matrix, paid = np.eye(len(transitions)), np.zeros(len(transitions))
    for cell, action in enumerate(best_actions(tuple(lake), slippery)):
        for chance, after, reward, ended in transitions[cell][action]:
            paid[cell] += chance * reward
            matrix[cell, after] -= chance * (not ended)
    return np.linalg.solve(matrix, paid)[0]


def test_the_expert_reaches_the_known_optimum_of_the_slippery_lake():
    # without a limit of steps: 14/17 on the 4x4 map; the 8x8 map has a way that risks nothing
    assert success(MAPS["4x4"], True) == pytest.approx(14 / 17)
    assert success(MAPS["8x8"], True) == pytest.approx(1.0)


def test_the_expert_takes_a_shortest_way_on_firm_ice():
    env = gym.make("bpo/FrozenLakeText-v0", map_name="8x8", **FIRM)
    env.reset(seed=0)
    steps = 0
    while env.unwrapped.admissible_actions():
        _, reward, *_ = env.step(NoisyExpert()(env, random.Random(0)))
        steps += 1
    assert (steps, reward) == (14, 1.0)


def test_every_generated_lake_can_be_crossed():
    env = gym.make("bpo/FrozenLakeText-v0", map_name="generated", split="test", **FIRM)
    for index in range(len(env.unwrapped.task_panel)):
        env.reset(options={"index": index})
        reward = 0.0
        while env.unwrapped.admissible_actions():
            _, reward, *_ = env.step(env.unwrapped.best_action())
        assert reward == 1.0


def test_lakes_are_the_same_everywhere():
    # a change of this digest changes the meaning of every recorded result on these lakes
    panel = FrozenLakeTextEnv("generated", **FIRM).task_panel
    assert panel.digest == "c3f22e34914e50f1dd96a2d6d0d6270ec65e93ac952a6bc800ec1db7ec40f49e"
    assert len(panel) == 600


def test_a_fixed_map_is_one_task_in_every_split():
    panels = [FrozenLakeTextEnv(split=split).task_panel for split in ("train", "dev", "test", "all")]
    assert {panel.task_ids for panel in panels} == {("lake-4x4",)}
    assert FrozenLakeTextEnv().task_panel.task_digests != FrozenLakeTextEnv(**FIRM).task_panel.task_digests


def test_the_one_task_of_a_fixed_map_may_be_listed_often():
    panel = FrozenLakeTextEnv(copies=3).task_panel
    assert panel.task_ids == ("lake-4x4-0", "lake-4x4-1", "lake-4x4-2")
    assert len(set(panel.task_digests)) == 1
    env = FrozenLakeTextEnv(copies=3, **FIRM)
    assert env.reset(options={"index": 2})[1]["task_id"] == "lake-4x4-2"


def test_a_map_of_ones_own_may_be_oblong():
    env = FrozenLakeTextEnv(desc=["SFFH", "FFFG"], **FIRM)
    assert env.reset(seed=0)[1]["task_id"] == "lake-custom"
    assert texts(env, ["down", "right", "right", "right"])[-1] == "you reach the goal\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"map_name": "5x5"}, "unknown map_name='5x5'; expected one of '4x4', '8x8', 'generated'"),
        ({"desc": ["SF", "FX"]}, "is no map"),
        ({"desc": ["SF", "G"]}, "is no map"),
        ({"desc": ["SS", "FG"]}, "is no map"),
        ({"desc": []}, "is no map"),
        ({"desc": "SFFG"}, "is no map"),
        ({"desc": ["SH", "HG"]}, "has no way from S to G"),
        ({"size": 3}, "size is 3; expected an integer from 4 to 10"),
        ({"copies": 0}, "copies is 0; expected an integer from 1 to 10000"),
        ({"copies": "2"}, "copies is '2'"),
        ({"copies": 2, "map_name": "generated"}, "unknown copies=2; expected one of 1"),
        ({"view": "picture"}, "unknown view='picture'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        FrozenLakeTextEnv(**settings)


@pytest.mark.parametrize("change", [{"cell": 16}, {"cell": 1.0}, {"cell": 5, "event": "unknown"}])
def test_impossible_moments_are_refused(change):
    env = FrozenLakeTextEnv()
    env.reset(seed=0)
    state = env.get_state()
    with pytest.raises(ValueError, match="state: "):
        env.set_state({**state, "moment": {**state["moment"], **change}})
