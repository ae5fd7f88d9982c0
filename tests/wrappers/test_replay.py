"""strategy="replay": an environment without a state to give goes back by doing it again."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import NormalizeReward, StickyAction, TimeLimit

from basket import DROP, PAY, TAKE, Basket, Mute, run, same
from wrappers import Snapshot, SnapshotEnv, SnapshotError


def replaying(wrap=lambda env: env) -> SnapshotEnv:
    return SnapshotEnv(wrap(TimeLimit(Mute(), 10)), strategy="replay")


@pytest.mark.parametrize("seed", [0, None])
def test_an_episode_is_replayed_here_and_elsewhere(seed):
    env, fork = replaying(), replaying()
    env.reset(seed=seed, options={"things": 4})
    observation, _, _, _, info = run(env, [TAKE, DROP, TAKE])[-1]
    snapshot = env.snapshot()
    expected = run(env, [TAKE] * 20)
    assert len(expected) == 7
    for one, form in ((env, snapshot), (fork, Snapshot.from_bytes(snapshot.to_bytes()))):
        assert same(one.restore(form), (observation, info))
        assert same(run(one, [TAKE] * 20), expected)


def test_a_later_unseeded_episode_is_replayed_from_where_the_generator_was():
    env = replaying()
    env.reset(seed=0)
    run(env, [TAKE, PAY])
    env.reset()
    env.step(TAKE)
    snapshot = env.snapshot()
    expected = run(env, [TAKE, TAKE])
    env.reset(seed=8)
    env.restore(snapshot)
    assert same(run(env, [TAKE, TAKE]), expected)


def test_wrappers_are_replayed_from_what_they_remembered_of_earlier_episodes():
    env = replaying(lambda inner: NormalizeReward(StickyAction(inner, 0.5)))
    env.reset(seed=0)
    run(env, [TAKE, TAKE, PAY])
    env.reset()
    env.step(TAKE)
    snapshot = env.snapshot()
    expected = run(env, [TAKE] * 5)
    env.restore(snapshot)
    assert same(run(env, [TAKE] * 5), expected)


def test_a_restored_episode_can_be_captured_again():
    env = replaying()
    env.reset(seed=0)
    env.step(TAKE)
    first = env.snapshot()
    env.step(DROP)
    env.restore(first)
    assert env.snapshot().to_bytes() == first.to_bytes()
    env.step(TAKE)
    second = env.snapshot()
    expected = run(env, [TAKE])
    env.restore(second)
    assert same(run(env, [TAKE]), expected)


def test_its_capability_is_replay():
    assert replaying().capability == "replay"


class Moody(Basket):
    """Draws from something that no seed reaches."""

    calls = itertools.count()

    def observe(self):
        observation, info = super().observe()
        return observation + next(self.calls), info


class Grudging(Mute):
    """Differs from the second reset on, and from the third step."""

    resets = 0

    def reset(self, **kwargs):
        self.resets += 1
        self.steps = 0
        return super().reset(**kwargs)

    def step(self, action):
        self.steps += 1
        observation, reward, *rest = super().step(action)
        return observation, reward + (self.resets > 1 and self.steps == 3), *rest


def test_an_environment_that_does_not_repeat_itself_is_found_out():
    env = SnapshotEnv(Moody(), strategy="replay")
    env.reset(seed=0)
    with pytest.raises(SnapshotError, match="another way at its reset"):
        env.restore(env.snapshot())
    env = SnapshotEnv(Grudging(), strategy="replay")
    env.reset(seed=0)
    run(env, [TAKE] * 4)
    with pytest.raises(SnapshotError, match="another way at its step 3"):
        env.restore(env.snapshot())


def test_observations_that_cannot_be_compared_are_refused():
    class Objects(Mute):
        def reset(self, **kwargs):
            return object(), {}

    with pytest.raises(SnapshotError, match=r"must compare observations.*builtins\.object"):
        SnapshotEnv(Objects(), strategy="replay").reset()


def test_a_malformed_record_is_refused():
    env = replaying()
    env.reset(seed=0)
    beginning, actions, prints = env.snapshot().payload()
    for payload in [None, (beginning, actions), (beginning, (TAKE,), prints), ((), actions, prints)]:
        with pytest.raises(SnapshotError):
            env.restore(Snapshot(env.snapshot().origin, payload))
            env.reset(seed=0)
        env.reset(seed=0)


def test_actions_are_recorded_as_they_were():
    class Vector(gym.Env):
        action_space = observation_space = gym.spaces.Box(-1, 1, (2,), np.float64)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(2), {}

        def step(self, action):
            observation = action.copy()
            action[:] = 9.0  # a step that spoils its argument
            return observation, 0.0, False, False, {}

    env = SnapshotEnv(Vector(), strategy="replay")
    env.reset(seed=0)
    env.step(np.array([0.5, -0.5]))
    assert np.array_equal(env.restore(env.snapshot())[0], [0.5, -0.5])
