"""What holds of every toy game: Gymnasium's contract, tasks, the common info, state in and out."""

from __future__ import annotations

import json
import random
import warnings

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import bpo_envs  # noqa: F401  (registers the ids)
from bpo_envs.toy.game import NoisyExpert, distinct, split_range

COMMON_INFO = {
    "task_id",
    "task_digest",
    "instruction",
    "admissible_actions",
    "won",
    "score",
    "steps_left",
}
CHANCE = {"start": "s", "transitions": {"s": {"a": [["1/3", "s", 0], ["2/3", "t", 1]]}}}
GAMES = {
    "tree": ("bpo/ToyMDP-v0", {}),
    "layered": ("bpo/ToyMDP-v0", {"mdp": "layered", "tokens": 2}),
    "early": ("bpo/ToyMDP-v0", {"mdp": "early", "horizon": 6, "seed": 3}),
    "by chance": ("bpo/ToyMDP-v0", {"mdp": CHANCE, "horizon": 9}),
    "corridor": ("bpo/KeyCorridor-v0", {}),
    "dense": ("bpo/KeyCorridor-v0", {"reward": "dense", "size": 4, "keys": 2}),
    "slippery": ("bpo/FrozenLakeText-v0", {}),
    "lakes": ("bpo/FrozenLakeText-v0", {"map_name": "generated", "is_slippery": False, "view": "map"}),
    "slippery lakes": ("bpo/FrozenLakeText-v0", {"map_name": "generated", "size": 5}),
}
each_game = pytest.mark.parametrize("name", GAMES)


def make(name, **more):
    env_id, kwargs = GAMES[name]
    return gym.make(env_id, **{**kwargs, **more})


def play(env, choices):
    """What one sees by taking an admissible action per number, to the end of the episode at most."""
    seen = []
    for choice in choices:
        actions = env.unwrapped.admissible_actions()
        if not actions:
            break
        seen.append(env.step(actions[choice % len(actions)]))
    return seen


# --- Gymnasium's contract


@each_game
def test_gymnasiums_checker_is_content(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name, render_mode="ansi").unwrapped)


@each_game
def test_rendering_shows_what_the_player_reads(name):
    env = make(name, render_mode="ansi")
    assert env.reset(seed=0)[0] == env.render()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors_return_the_true_text(mode):
    alone = [gym.make("bpo/KeyCorridor-v0") for _ in range(2)]
    expected = [env.reset(seed=3 + i)[0] for i, env in enumerate(alone)]
    vector = gym.make_vec("bpo/KeyCorridor-v0", num_envs=2, vectorization_mode=mode)
    try:
        assert list(vector.reset(seed=3)[0]) == expected
        assert list(vector.step(["right", "right"])[0]) == [env.step("right")[0] for env in alone]
    finally:
        vector.close()


# --- tasks


@each_game
def test_an_index_and_a_name_choose_the_same_task(name):
    env = make(name)
    panel = env.unwrapped.task_panel
    number = len(panel) - 1
    _, by_index = env.reset(seed=1, options={"index": number})
    _, by_name = env.reset(seed=1, options={"task_id": panel.task_ids[number]})
    assert by_index == by_name
    assert (by_index["task_id"], by_index["task_digest"]) == (
        panel.task_ids[number],
        panel.task_digests[number],
    )


@pytest.mark.parametrize("options", [{"index": 10**6}, {"task_id": "nowhere"}, {"seed": 3}])
@each_game
def test_options_that_name_no_task_are_errors(name, options):
    with pytest.raises(ValueError):
        make(name).reset(options=options)


@pytest.mark.parametrize("name", ["corridor", "lakes"])
def test_splits_share_no_task_and_make_up_all(name):
    panels = {
        split: make(name, split=split).unwrapped.task_panel for split in ("train", "dev", "test", "all")
    }
    parts = [digest for split in ("test", "dev", "train") for digest in panels[split].task_digests]
    assert parts == list(panels["all"].task_digests)
    assert len(set(parts)) == len(parts)
    assert len(panels["test"]) == len(panels["dev"]) == len(parts) // 5


@each_game
def test_an_unknown_split_is_an_error(name):
    with pytest.raises(ValueError, match=r"unknown split='validation'.*'train', 'dev', 'test', 'all'"):
        make(name, split="validation")


def test_too_few_tasks_cannot_be_split():
    with pytest.raises(ValueError, match="4 different tasks are too few"):
        split_range("train", 4)


def test_distinct_draws_stop_when_all_that_is_possible_was_found():
    assert distinct(lambda number: number % 3, wanted=10, possible=3) == (0, 1, 2)
    assert distinct(lambda number: number // 2, wanted=3) == (0, 1, 2)


# --- info and actions


@each_game
def test_the_info_is_the_common_one(name):
    env = make(name, max_episode_steps=7)
    _, info = env.reset(seed=0)
    assert set(info) == COMMON_INFO
    assert info["steps_left"] == 7
    assert (info["won"], info["score"]) == (False, 0.0)
    assert set(env.step(info["admissible_actions"][0])[4]) == COMMON_INFO


@each_game
@pytest.mark.parametrize("action", ["fly", "", "take", "take the red key", "LEFT RIGHT", "é\n\x00" * 400])
def test_a_malformed_action_only_costs_a_step_and_is_told(name, action):
    env = make(name, max_episode_steps=7)
    _, before = env.reset(seed=0)
    moment = env.unwrapped.get_state()["moment"]
    text, reward, terminated, truncated, info = env.step(action)
    after = env.unwrapped.get_state()["moment"]
    assert text in ("unknown action\n", "there is no such key\n")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert {**after, "event": ""} == {**moment, "event": ""}
    assert info == {**before, "steps_left": 6}


@each_game
def test_spaces_around_words_do_not_count(name):
    env = make(name)
    _, info = env.reset(seed=0)
    action = info["admissible_actions"][0]
    padded = "  " + action.replace(" ", "   ") + "\t"
    here = env.snapshot()
    expected = env.step(action)
    env.restore(here)
    assert env.step(padded) == expected


@each_game
def test_what_is_no_string_is_an_error_of_the_caller(name):
    env = make(name)
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"given: 3 \(int\)"):
        env.step(3)


@each_game
def test_there_is_no_step_before_a_reset_or_after_the_end(name):
    env = make(name).unwrapped
    with pytest.raises(RuntimeError, match="call reset"):
        env.step("a")
    env.reset(seed=0)
    while actions := env.admissible_actions():
        env.step(env.best_action() if "open" not in actions else "open")
    with pytest.raises(RuntimeError, match="the episode is over"):
        env.step("a")


# --- state


@each_game
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_snapshot_brings_back_the_moment_and_its_future(name, data):
    choices = st.lists(st.integers(0, 5), max_size=12)
    env, other = make(name), make(name)
    first = env.reset(seed=data.draw(st.integers(0, 20)))
    for step in play(env, data.draw(choices)):
        first = step[0], step[4]
    here = env.snapshot()
    future = data.draw(choices)
    expected = play(env, future)
    for again in (env, other):
        assert again.restore(here) == first
        assert play(again, future) == expected


@each_game
def test_a_state_is_plain_data_that_may_pass_through_json(name):
    env = make(name).unwrapped
    env.reset(seed=4)
    play(env, [1])
    state = json.loads(json.dumps(env.get_state()))
    expected = env.set_state(env.get_state())
    assert env.set_state(state) == expected


@each_game
def test_damaged_states_are_refused_and_change_nothing(name):
    env = make(name).unwrapped
    env.reset(seed=0)
    good = env.get_state()
    damaged = [
        None,
        {},
        {**good, "task": "nowhere"},
        {**good, "steps": -1},
        {**good, "steps": True},
        {**good, "moment": None},
        {**good, "moment": {**good["moment"], "more": 1}},
        {**good, "moment": {**good["moment"], "event": "flew"}},
        *({**good, "moment": {**good["moment"], field: -1}} for field in good["moment"]),
        *({**good, "moment": {**good["moment"], field: [["red"], {}]}} for field in good["moment"]),
    ]
    for state in damaged:
        with pytest.raises(ValueError):
            env.set_state(state)
        assert env.get_state() == good


# --- experts


@each_game
def test_the_experts_errors_are_those_of_the_given_generator(name):
    env = make(name)
    traces = []
    for _ in range(2):
        env.reset(seed=5)
        rng, expert, trace = random.Random(1), NoisyExpert(0.5), []
        for _ in range(20):
            if env.unwrapped.admissible_actions():
                trace.append(env.step(expert(env, rng)))
        traces.append(trace)
    assert traces[0] == traces[1]


def test_the_expert_plays_toy_games_only():
    with pytest.raises(TypeError, match=r"plays the games of bpo_envs\.toy"):
        NoisyExpert()(gym.make("CartPole-v1"), random.Random(0))
