"""The scripted shopper: nearly perfect if it is not to err, never at a loss if it is."""

from __future__ import annotations

import random

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bpo_envs  # noqa: F401  (registers the ids)
from bpo_envs.webshop.compact import CompactView
from bpo_envs.webshop.expert import NoisyExpert
from wrappers import SnapshotEnv


def make(**kwargs) -> SnapshotEnv:
    env = gym.make("bpo/WebShop-v0", max_episode_steps=12, disable_env_checker=True, **kwargs)
    return SnapshotEnv(CompactView(env.env))


@pytest.fixture(scope="module")
def env():
    return make(split="test")


def play(env, expert, index: int, seed: int) -> tuple[bool, float, list[str]]:
    """Won, score and the actions of one episode."""
    rng, actions, done = random.Random(seed), [], False
    env.reset(options={"index": index})
    while not done:
        actions.append(expert(env, rng))
        _, _, terminated, truncated, info = env.step(actions[-1])
        done = terminated or truncated
    return info["won"], info["score"], actions


def success(env, expert, count: int = 100) -> float:
    return sum(play(env, expert, index, index)[0] for index in range(count)) / count


def test_without_errors_it_wins_more_than_nine_tasks_of_ten(env):
    assert success(env, NoisyExpert()) > 0.9


def test_without_errors_nothing_is_left_to_chance(env):
    assert play(env, NoisyExpert(), 3, seed=0) == play(env, NoisyExpert(), 3, seed=1)


def test_the_same_errors_come_from_the_same_numbers(env):
    erring = NoisyExpert(0.5, 0.5, 0.5, 0.5)
    assert play(env, erring, 3, seed=5) == play(env, erring, 3, seed=5)
    assert len({tuple(play(env, erring, 3, seed)[2]) for seed in range(8)}) > 1


@pytest.mark.parametrize("fault", ["query", "item", "option", "back"])
def test_every_kind_of_error_costs_success(env, fault):
    if fault == "back":  # it matters where the first product opened is seldom the right one
        assert success(env, NoisyExpert(item=0, back=0), 60) < success(env, NoisyExpert(item=0), 60)
    else:
        assert success(env, NoisyExpert(**{fault: 0.0}), 60) < success(env, NoisyExpert(), 60) - 0.1


def test_it_makes_no_invalid_move(env):
    rng = random.Random(0)
    for index in range(40):
        env.reset(options={"index": index})
        done = False
        while not done:
            text, _, terminated, truncated, _ = env.step(NoisyExpert(0.5, 0.4, 0.6, 0.5)(env, rng))
            done = terminated or truncated
            assert text != "invalid\n"


share = st.sampled_from([0.0, 0.3, 1.0])


@settings(max_examples=60, deadline=None)
@given(share, share, share, share, st.integers(0, 499), st.integers(0, 99))
def test_however_it_errs_it_ends_its_episode(query, item, option, back, index, seed):
    _, score, actions = play(make_once(), NoisyExpert(query, item, option, back), index, seed)
    assert 0 <= score <= 1
    assert 1 <= len(actions) <= 12


_made: list[SnapshotEnv] = []


def make_once() -> SnapshotEnv:
    if not _made:
        _made.append(make(split="test"))
    return _made[0]


def test_goals_of_people_are_shopped_for_too():
    # the options of such goals have no names, and some goals have no query
    env = make(goals="human", split="all")
    results = [play(env, NoisyExpert(), index, 0) for index in range(9)]
    assert sum(won for won, _, _ in results) > 0


def test_it_shops_in_the_shop_only():
    with pytest.raises(TypeError, match="NoisyExpert shops in bpo/WebShop-v0"):
        NoisyExpert()(gym.make("CartPole-v1"), random.Random(0))
