"""SnapshotEnv among Gymnasium's own tools: make, specs, vectors, conversions of rendering."""

from __future__ import annotations

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from basket import TAKE, Basket, same
from wrappers import Snapshot, SnapshotEnv


def test_a_registered_id_has_it_outermost_also_with_another_step_limit():
    for limit in (None, 3):
        env = gym.make("test/Basket-v0", max_episode_steps=limit)
        assert str(env).startswith("<SnapshotEnv<TimeLimit<OrderEnforcing<")


def test_an_environment_is_made_again_from_its_spec():
    env = gym.make("test/Basket-v0", max_episode_steps=4, tax=0.5)
    again = gym.make(env.spec)
    assert str(again) == str(env)
    env.reset(seed=0)
    again.restore(env.snapshot())
    assert env.spec.to_json()


def test_the_strategy_is_part_of_the_spec():
    env = SnapshotEnv(gym.make("test/Mute-v0"), strategy="replay")
    assert gym.make(env.spec).capability == "replay"


@pytest.mark.filterwarnings("ignore::UserWarning")  # that it is a wrapper; that the bounds are infinite
def test_the_checker_of_gymnasium_is_content():
    check_env(SnapshotEnv(Basket()), skip_render_check=True)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_snapshots_pass_through_gymnasiums_vectors(mode):
    vector = gym.make_vec("test/Basket-v0", 2, vectorization_mode=mode)
    try:
        vector.reset(seed=[1, 2])
        vector.step([TAKE, TAKE])
        snapshots = vector.call("snapshot")
        expected = vector.step([TAKE, TAKE])[:2]
        alone = gym.make("test/Basket-v0")
        for index, snapshot in enumerate(snapshots):
            assert isinstance(snapshot, Snapshot)
            alone.restore(snapshot)
            observation, reward, *_ = alone.step(TAKE)
            assert same(observation, expected[0][index])
            assert float(reward) == expected[1][index]
    finally:
        vector.close()
