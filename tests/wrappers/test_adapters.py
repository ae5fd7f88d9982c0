"""Environments that were not written for snapshots: exact through their adapters, here and elsewhere."""

from __future__ import annotations

import importlib

import gymnasium as gym
import pytest

from basket import run, same
from support import installed, need
from wrappers import Snapshot, SnapshotEnv, SnapshotError

TOY = ["Blackjack-v1", "CliffWalking-v1", "FrozenLake-v1", "Taxi-v4"]
CLASSIC = ["Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"]
MUJOCO = ["Ant-v5", "Hopper-v5", "Humanoid-v5", "Pusher-v5", "Reacher-v5"]
OPTIONS = {
    "Taxi-v4": {"is_rainy": True, "fickle_passenger": True},
    "CliffWalking-v1": {"is_slippery": True},
    "Blackjack-v1": {"natural": True},
}


def check_round_trips(make, strategy: str, length: int = 30) -> None:
    """Early and late moments of several episodes, restored after going on, and into another instance."""
    env, fork = SnapshotEnv(make(), strategy=strategy), SnapshotEnv(make(), strategy=strategy)
    env.action_space.seed(0)
    for seed in range(4):
        observation, info = env.reset(seed=seed)
        for answer in run(env, [env.action_space.sample() for _ in range(3 * seed)]):
            observation, info = answer[0], answer[4]
        snapshot = env.snapshot()
        actions = [env.action_space.sample() for _ in range(length)]
        expected = run(env, actions)
        for one, form in ((env, snapshot), (fork, Snapshot.from_bytes(snapshot.to_bytes()))):
            assert same(one.restore(form), (observation, info))
            assert one.snapshot().to_bytes() == snapshot.to_bytes()
            assert same(run(one, actions), expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("strategy", ["state", "replay"])
@pytest.mark.parametrize("env_id", TOY + CLASSIC)
def test_toy_text_and_classic_control(env_id, strategy):
    check_round_trips(lambda: gym.make(env_id, **OPTIONS.get(env_id, {})), strategy)


@pytest.mark.parametrize("env_id", TOY + CLASSIC)
def test_their_capability_is_exact(env_id):
    assert SnapshotEnv(gym.make(env_id)).capability == "exact"


def test_a_subclass_may_remember_more_and_gets_no_adapter():
    class Windy(type(gym.make("CartPole-v1").unwrapped)):
        pass

    assert SnapshotEnv(Windy()).capability == "none"


@pytest.mark.parametrize(
    ("env_id", "state", "complaint"),
    [
        ("CartPole-v1", {"state": [1.0], "steps_beyond_terminated": None}, "state of CartPoleEnv cannot be"),
        ("CartPole-v1", {"state": None}, "expected the attributes"),
        ("FrozenLake-v1", {"s": 99, "lastaction": None}, "s of FrozenLakeEnv cannot be 99"),
        ("FrozenLake-v1", None, "expected the attributes s, lastaction"),
        (
            "Blackjack-v1",
            {
                "player": [1, 77],
                "dealer": [1, 2],
                "dealer_top_card_suit": "C",
                "dealer_top_card_value_str": "A",
            },
            "player of BlackjackEnv cannot be",
        ),
    ],
)
def test_a_state_that_the_environment_cannot_be_in_is_refused(env_id, state, complaint):
    env = SnapshotEnv(gym.make(env_id))
    env.reset(seed=0)
    _, *rest = env.snapshot().payload()
    with pytest.raises(SnapshotError, match=complaint):
        env.restore(Snapshot(env.snapshot().origin, (state, *rest)))


@pytest.fixture
def atari() -> None:
    need(installed("ale_py"), "ale-py", "pip install ale-py")
    gym.register_envs(importlib.import_module("ale_py"))


@pytest.mark.parametrize("options", [{}, {"frameskip": (2, 5)}, {"obs_type": "ram"}], ids=str)
def test_atari(atari, options):
    check_round_trips(lambda: gym.make("ALE/Breakout-v5", repeat_action_probability=0, **options), "state")


def test_the_sticky_actions_of_atari_are_refused(atari):
    with pytest.raises(SnapshotError, match=r"sticky action.*repeat_action_probability=0"):
        SnapshotEnv(gym.make("ALE/Breakout-v5"), strategy="state")


@pytest.mark.parametrize("env_id", MUJOCO)
def test_mujoco(env_id):
    need(installed("mujoco", "imageio"), "MuJoCo", 'pip install "gymnasium[mujoco]"')
    check_round_trips(lambda: gym.make(env_id), "state")
