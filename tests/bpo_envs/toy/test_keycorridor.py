"""`bpo/KeyCorridor-v0`: its rules, its rewards, its tasks."""

from __future__ import annotations

import random
from collections import Counter

import gymnasium as gym
import pytest

import bpo_envs  # noqa: F401  (registers the ids)
from bpo_envs.toy.game import NoisyExpert
from bpo_envs.toy.keycorridor import Corridor, KeyCorridorEnv, corridors

EXAMPLE = Corridor(3, (("red", 2), ("blue", 1), ("grey", 2)), "red")


def begin(reward="sparse"):
    """The example in the module's docstring."""
    env = KeyCorridorEnv(size=3, keys=3, reward=reward, split="all")
    tasks, _ = corridors(3, 3, "all")
    text, _ = env.reset(options={"index": tasks.index(EXAMPLE)})
    return env, text


def texts(env, actions):
    return [env.step(action)[0] for action in actions]


def test_an_episode_reads_as_documented():
    env, text = begin()
    assert text == "open the door with the red key\nroom 1: blue key\n"
    assert texts(env, ["right", "take red", "right"]) == [
        "room 2: red key, grey key\n",
        "you hold the red key\n",
        "room 3: door\n",
    ]
    text, reward, terminated, truncated, info = env.step("open")
    assert (text, reward, terminated, truncated) == ("the door opens\n", 1.0, True, False)
    assert (info["won"], info["score"], info["admissible_actions"]) == (True, 1.0, [])


def test_a_wrong_key_breaks_and_ends_the_episode():
    env, _ = begin()
    texts(env, ["take blue", "right", "right"])
    text, reward, terminated, _, info = env.step("open")
    assert (text, reward, terminated) == ("the blue key breaks in the lock\n", 0.0, True)
    assert (info["won"], info["score"]) == (False, 0.0)


def test_a_hand_holds_one_key_and_leaves_the_other_behind():
    env, _ = begin()
    texts(env, ["take blue", "right", "take red", "right"])
    assert texts(env, ["left"]) == ["room 2: blue key, grey key\n"]


def test_what_cannot_be_done_is_told():
    env, _ = begin()
    assert texts(env, ["left", "take red", "open", "right", "right", "right", "open"]) == [
        "there is a wall\n",
        "there is no such key\n",
        "there is no door\n",
        "room 2: red key, grey key\n",
        "room 3: door\n",
        "there is a wall\n",
        "the door is locked\n",
    ]


def test_case_does_not_count():
    env, _ = begin()
    assert texts(env, ["Take BLUE"]) == ["you hold the blue key\n"]


def test_only_what_changes_something_is_admissible():
    env, _ = begin()
    assert env.admissible_actions() == ["take blue", "right"]
    env.step("right")
    assert env.admissible_actions() == ["take red", "take grey", "left", "right"]
    env.step("right")
    assert env.admissible_actions() == ["left"]


def test_dense_rewards_pay_the_share_of_the_way_and_sum_to_the_score():
    env, _ = begin("dense")
    assert [env.step(a)[1] for a in ("right", "take red", "right", "open")] == [0.25] * 4
    env, _ = begin("dense")
    assert [env.step(a)[1] for a in ("right", "right", "fly", "left")] == [0.25, -0.25, 0.0, 0.25]
    env, _ = begin("dense")
    # 4 steps are needed at first, still 4 with the wrong key, 3 in room 2, 4 at the door, 4 when it broke
    assert [env.step(a)[1] for a in ("take blue", "right", "right", "open")] == [0.0, 0.25, -0.25, 0.0]


@pytest.mark.parametrize(("size", "keys"), [(2, 1), (6, 3), (12, 6)])
def test_every_task_is_won_in_size_plus_one_steps(size, keys):
    env = gym.make("bpo/KeyCorridor-v0", size=size, keys=keys, split="all")
    for index in range(0, len(env.unwrapped.task_panel), 7):
        env.reset(options={"index": index})
        rewards = []
        while env.unwrapped.admissible_actions():
            rewards.append(env.step(NoisyExpert()(env, random.Random(0)))[1])
        assert rewards == [*[0.0] * size, 1.0]


@pytest.mark.parametrize(
    "actions", [["take blue", "right", "right"], ["right", "take grey", "right", "left"]]
)
def test_the_expert_mends_errors(actions):
    env, _ = begin()
    texts(env, actions)
    for _ in range(8):
        if env.admissible_actions():
            _, reward, *_ = env.step(env.best_action())
    assert reward == 1.0


def test_a_small_corridor_has_all_its_tasks():
    # one key of 6 colours in one of 2 rooms
    assert len(corridors(2, 1, "all")[0]) == 12


def test_colours_and_rooms_are_drawn_evenly():
    tasks, _ = corridors(6, 3, "all")
    assert len(tasks) == 2000
    # 1/6 of 2,000 each: 333, standard deviation 17; 1/6 of 6,000 places: 1,000, standard deviation 29
    targets = Counter(task.target for task in tasks)
    rooms = Counter(room for task in tasks for _, room in task.keys)
    assert all(abs(targets[colour] - 333) < 85 for colour in targets) and len(targets) == 6
    assert all(abs(rooms[room] - 1000) < 145 for room in range(1, 7))


def test_tasks_are_the_same_everywhere():
    # a change of this digest changes the meaning of every recorded result on this environment
    panel = KeyCorridorEnv().task_panel
    assert panel.digest == "175035263ad4899b9cd1b79b546f262948727c76555e2efaf0959c8c0a14c495"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 1}, "size is 1; expected an integer from 2 to 50"),
        ({"size": 6.0}, "size is 6.0"),
        ({"keys": 7}, "keys is 7; expected an integer from 1 to 6"),
        ({"reward": "shaped"}, "unknown reward='shaped'; expected one of 'sparse', 'dense'"),
        ({"render_mode": "human"}, "unknown render_mode='human'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        KeyCorridorEnv(**settings)


@pytest.mark.parametrize(
    "change",
    [
        {"room": 4},
        {"hand": "green"},
        {"hand": "red"},  # and still lying in room 2
        {"event": "took"},
        {"event": "opened"},
        {"event": "locked"},
        {"keys": (("red", 2), ("blue", 9), ("grey", 2))},
        {"keys": (("red", 2), ("blue", 1))},
    ],
)
def test_impossible_moments_are_refused(change):
    env, _ = begin()
    state = env.get_state()
    with pytest.raises(ValueError, match="state: "):
        env.set_state({**state, "moment": {**state["moment"], **change}})
