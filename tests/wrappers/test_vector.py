"""make_vec: Gymnasium's reset and step, and snapshots, restores and forks of single parts."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from basket import DROP, PAY, TAKE, same
from wrappers import Snapshot, SnapshotEnv, SnapshotError, make_vec
from wrappers.fidelity.compare import Comparison, capture

ID = "test/Basket-v0"
each_way = pytest.mark.parametrize("workers", [0, 2], ids=["here", "in workers"])


@pytest.fixture
def vec(workers, request):
    made = make_vec(ID, 3, workers, modules=["basket"])
    yield made
    made.close()


def equal(left, right) -> bool:
    return Comparison().difference(capture(left), capture(right)) is None


@each_way
def test_reset_and_step_are_those_of_gymnasium(vec):
    reference = gym.make_vec(ID, 3, vectorization_mode="sync")
    assert equal(vec.reset(seed=4), reference.reset(seed=4))
    assert vec.observation_space == reference.observation_space
    assert vec.action_space == reference.action_space
    for _ in range(25):  # through ends and automatic resets
        actions = np.array([TAKE, DROP, PAY])
        assert equal(vec.step(actions), reference.step(actions))


@each_way
def test_a_part_goes_back_and_the_others_go_on(vec):
    vec.reset(seed=1)
    before = vec.step([TAKE, TAKE, TAKE])
    snapshot = vec.snapshot(1)
    expected = vec.step([TAKE, TAKE, TAKE])
    observation, info = vec.restore(1, snapshot)
    assert same(observation, before[0][1]) and same(info["prices"], before[4]["prices"][1])
    again = vec.step([DROP, TAKE, DROP])
    assert same(again[0][1], expected[0][1]) and again[0][0][2] == 3  # the others count a third step


@each_way
def test_a_fork_continues_as_its_source(vec):
    vec.reset(seed=1)
    vec.step([TAKE, DROP, DROP])
    vec.fork(0, [1, 2])
    for action in (TAKE, TAKE, DROP, TAKE):
        observations, rewards, *_ = vec.step([action] * 3)
        assert (observations == observations[0]).all() and (rewards == rewards[0]).all()


@each_way
def test_snapshots_travel_to_environments_outside(vec):
    vec.reset(seed=1)
    vec.step([TAKE, DROP, DROP])
    env = gym.make(ID)
    env.restore(Snapshot.from_bytes(vec.snapshot(0).to_bytes()))
    expected = env.step(TAKE)
    assert same(vec.step([TAKE, TAKE, TAKE])[0][0], expected[0])


@each_way
def test_an_end_is_left_by_a_restore(vec):
    vec.reset(seed=1)
    snapshot = vec.snapshot(0)
    assert vec.step([PAY, TAKE, TAKE])[2].tolist() == [True, False, False]
    ended = vec.snapshot(0)
    vec.restore(0, snapshot)
    assert vec.step([TAKE, TAKE, TAKE])[0][0][2] == 1  # a step, no automatic reset
    vec.restore(0, ended)
    assert vec.step([TAKE, TAKE, TAKE])[0][0][2] == 0  # the automatic reset that follows an end


@each_way
def test_what_a_part_refuses_is_raised_and_the_vector_goes_on(vec):
    vec.reset(seed=1)
    foreign = gym.make("test/RebuildingBasket-v0")
    foreign.reset(seed=0)
    with pytest.raises(SnapshotError, match="another environment"):
        vec.restore(1, foreign.snapshot())
    assert vec.step([TAKE, TAKE, TAKE])[0][0][2] == 1
    with pytest.raises(IndexError, match="0 to 2, got 3"):
        vec.snapshot(3)


@each_way
def test_ended_parts_are_reset_by_a_mask_where_automatic_resets_are_disabled(workers):
    vec = make_vec(ID, 2, workers, autoreset_mode="Disabled", modules=["basket"])
    vec.reset(seed=1)
    vec.step([PAY, TAKE])
    with pytest.raises(RuntimeError, match=r"episodes of \[0\] have ended; reset them"):
        vec.step([TAKE, TAKE])
    observations, _ = vec.reset(seed=5, options={"reset_mask": np.array([True, False])})
    assert observations[:, 2].tolist() == [0.0, 1.0]
    vec.close()


class Broken(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        raise ZeroDivisionError("of all things")


def test_an_exception_in_a_worker_is_told_with_its_place():
    vec = make_vec(Broken, 2, 2)
    vec.reset()
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError: of all things \(.*test_vector.py:\d+\)"):
        vec.step([0, 0])
    with pytest.raises(SnapshotError, match="no get_state"):
        vec.snapshot(0)
    vec.close()


def test_a_worker_that_cannot_make_its_environment_says_why():
    with pytest.raises(RuntimeError, match=r"NamespaceNotFound|NameNotFound"):
        make_vec("nowhere/Nothing-v0", 1, 1)


class Layers(gym.Env):
    """Counts in a file which snapshots it holds."""

    snapshot_capability = "filesystem"
    observation_space = action_space = gym.spaces.Discrete(2)

    def __init__(self, log):
        self.log = log

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

    def get_state(self):
        return "layer"

    def set_state(self, state):
        pass

    def release_state(self, state):
        with Path(self.log).open("a") as log:
            log.write("released ")


@each_way
def test_what_a_snapshot_holds_is_given_back_when_it_is_closed(workers, tmp_path):
    log = tmp_path / "log"
    vec = make_vec(Layers, 1, workers, log=str(log))
    vec.reset()
    snapshot = vec.snapshot(0)
    vec.restore(0, snapshot)
    assert not log.exists()
    snapshot.close()
    vec.reset()  # a worker hears of it with the next call
    assert log.read_text() == "released "
    vec.close()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"n": 0}, "n >= 1"),
        ({"n": 1, "workers": -1}, "workers >= 0"),
        ({"n": 1, "autoreset_mode": "SameStep"}, "SAME"),
    ],
)
def test_sizes_and_modes_that_make_no_sense_are_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        make_vec(ID, **arguments)


def test_parts_are_snapshot_envs_by_the_given_strategy():
    vec = make_vec("test/Mute-v0", 2, strategy="replay")
    vec.reset(seed=0)
    assert vec.capability == vec.snapshot(0).capability == "replay"
    assert isinstance(vec._hosts[0]._envs[0], SnapshotEnv)
    vec.close()
