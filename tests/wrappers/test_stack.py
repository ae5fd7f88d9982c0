"""Every wrapper's memory is captured and put back; unknown ones are refused by name."""

from __future__ import annotations

import sys
from collections import deque
from types import ModuleType

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers as gw

from basket import PAY, TAKE, Basket, run, same
from wrappers import Snapshot, SnapshotEnv, SnapshotError

STACKS = {
    "Autoreset": lambda env: gw.Autoreset(gw.TimeLimit(env, 4)),
    "DelayObservation": lambda env: gw.DelayObservation(env, 2),
    "FrameStackObservation": lambda env: gw.FrameStackObservation(env, 3),
    "FrameStackObservation-zero": lambda env: gw.FrameStackObservation(env, 3, padding_type="zero"),
    "MaxAndSkipObservation": lambda env: gw.MaxAndSkipObservation(env, 2),
    "NormalizeObservation": gw.NormalizeObservation,
    "NormalizeReward": gw.NormalizeReward,
    "OrderEnforcing": gw.OrderEnforcing,
    "PassiveEnvChecker": gw.PassiveEnvChecker,
    "RecordEpisodeStatistics": gw.RecordEpisodeStatistics,
    "RepeatAction": lambda env: gw.RepeatAction(env, 2),
    "StickyAction": lambda env: gw.StickyAction(env, 0.5),
    "StickyAction-long": lambda env: gw.StickyAction(env, 0.5, (2, 4)),
    "TimeAwareObservation": lambda env: gw.TimeAwareObservation(gw.TimeLimit(env, 9)),
    "TimeLimit": lambda env: gw.TimeLimit(env, 9),
    "TransformReward": lambda env: gw.TransformReward(env, lambda reward: reward * 2),
    "all at once": lambda env: gw.NormalizeObservation(
        gw.FrameStackObservation(
            gw.RecordEpisodeStatistics(gw.NormalizeReward(gw.StickyAction(gw.TimeLimit(env, 9), 0.3))), 2
        )
    ),
}


def answers(env: gym.Env, actions: list[int]) -> list[tuple]:
    """As `run`, without the wall-clock time of RecordEpisodeStatistics."""
    found = run(env, actions)
    for answer in found:
        if "episode" in answer[4]:
            answer[4]["episode"].pop("t")
    return found


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_goes_on_as_if_nothing_had_happened_here_and_in_another_instance(name):
    env = SnapshotEnv(STACKS[name](Basket()))
    env.reset(seed=2)
    run(env, [TAKE, TAKE, PAY])
    observation, _ = env.reset()  # memory that outlives an episode counts too
    if name != "RepeatAction":
        observation = env.step(TAKE)[0]
    snapshot = env.snapshot()
    actions = [TAKE, 1, TAKE, TAKE, 1, TAKE, TAKE, TAKE, TAKE, TAKE]
    expected = answers(env, actions)
    env.reset(seed=5)
    run(env, [TAKE])
    fork = SnapshotEnv(STACKS[name](Basket()))
    for one, form in ((env, snapshot), (fork, Snapshot.from_bytes(snapshot.to_bytes()))):
        assert same(one.restore(form)[0], observation)
        assert same(answers(one, actions), expected)


def test_restored_statistics_are_those_of_the_moment():
    env = SnapshotEnv(gw.RecordEpisodeStatistics(Basket(), buffer_length=5))
    env.reset(seed=0)
    run(env, [TAKE, PAY])
    snapshot = env.snapshot()
    statistics = env.env
    queues = [list(queue) for queue in (statistics.return_queue, statistics.length_queue)]
    env.reset(seed=1)
    run(env, [TAKE, TAKE, PAY])
    env.restore(snapshot)
    assert [list(queue) for queue in (statistics.return_queue, statistics.length_queue)] == queues
    assert isinstance(statistics.return_queue, deque) and statistics.return_queue.maxlen == 5
    assert statistics.episode_count == 1


# --- wrappers of one's own -------------------------------------------------------------------------------


class Counting(gym.Wrapper):
    """Remembers something and says nothing about it."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.calls = 0

    def step(self, action):
        self.calls += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {**info, "calls": self.calls}


class CountingWithState(Counting):
    def get_state(self):
        return self.calls

    def set_state(self, state):
        if type(state) is not int:
            raise TypeError(f"expected a number of calls, got {state!r}")
        self.calls = state


class Bare(gym.Wrapper):
    """Nothing of its own to remember."""


class LaterMemory(gym.Wrapper):
    def reset(self, **kwargs):
        self.episode = 1
        return self.env.reset(**kwargs)


class LongerLimit(gw.TimeLimit):
    """A subclass of a known wrapper may remember more than its parent."""


@pytest.mark.parametrize(
    ("wrap", "complaint"),
    [
        (Counting, r"Counting: it has instance attributes \(calls\)"),
        (LaterMemory, r"LaterMemory: it has instance attributes \(episode\)"),
        (lambda env: LongerLimit(env, 5), "LongerLimit: it has instance attributes"),
        (lambda env: gw.TimeLimit(Counting(env), 5), "Counting: it has"),
    ],
    ids=["counter", "attribute made at reset", "subclass", "deeper in the stack"],
)
def test_an_unknown_wrapper_with_attributes_is_refused_by_name(wrap, complaint):
    env = SnapshotEnv(wrap(Basket()))
    env.reset(seed=0)
    with pytest.raises(SnapshotError, match=complaint):
        env.snapshot()
    env.step(TAKE)  # the environment itself goes on


def test_a_wrapper_with_get_state_and_set_state_is_captured():
    env = SnapshotEnv(CountingWithState(Basket()))
    env.reset(seed=0)
    env.step(TAKE)
    snapshot = env.snapshot()
    expected = run(env, [TAKE, TAKE])
    assert expected[-1][4]["calls"] == 3
    env.restore(snapshot)
    assert same(run(env, [TAKE, TAKE]), expected)


def test_a_wrapper_without_attributes_needs_nothing():
    env = SnapshotEnv(Bare(Basket()))
    env.reset(seed=0)
    snapshot = env.snapshot()
    expected = run(env, [TAKE, TAKE])
    env.restore(snapshot)
    assert same(run(env, [TAKE, TAKE]), expected)


# --- values a wrapper cannot hold ------------------------------------------------------------------------


def forged(env: SnapshotEnv, states: object) -> Snapshot:
    base, generator, _, last = env.snapshot().payload()
    return Snapshot(env.snapshot().origin, (base, generator, states, last))


@pytest.mark.parametrize(
    ("name", "states", "complaint"),
    [
        ("TimeLimit", (("3",),), "TimeLimit: _elapsed_steps cannot be '3'"),
        ("TimeLimit", ((True,),), "_elapsed_steps cannot be True"),
        ("TimeLimit", ((-7,),), "_elapsed_steps cannot be -7"),
        ("TimeLimit", ((1, 2),), "expected 1 values"),
        ("TimeLimit", (), "states of 1 wrappers"),
        ("TimeLimit", None, "states of 1 wrappers"),
        ("OrderEnforcing", ((3,),), "_has_reset cannot be 3"),
        ("StickyAction", ((9, False, 0, 0),), "last_action cannot be 9"),
        ("DelayObservation", (((np.zeros(7),),),), "observation_queue cannot be"),
        ("NormalizeObservation", ((np.zeros(2), np.zeros(3), 1.0, True),), "obs_rms.mean cannot be"),
    ],
)
def test_a_value_that_a_wrapper_cannot_hold_is_refused(name, states, complaint):
    env = SnapshotEnv(STACKS[name](Basket()))
    env.reset(seed=0)
    with pytest.raises(SnapshotError, match=complaint):
        env.restore(forged(env, states))


def test_what_a_wrapper_of_ones_own_refuses_is_a_snapshot_error():
    env = SnapshotEnv(CountingWithState(Basket()))
    env.reset(seed=0)
    with pytest.raises(SnapshotError, match="expected a number of calls"):
        env.restore(forged(env, ("many",)))


def test_observations_beyond_the_bounds_of_their_box_are_kept():
    class Beyond(Basket):  # many environments overstep their own bounds
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gym.spaces.Box(0, 1, (3,), np.float32)

    env = SnapshotEnv(gw.FrameStackObservation(Beyond(), 2))
    env.reset(seed=0)
    env.step(TAKE)
    env.restore(env.snapshot())


class Painted(Basket):
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def render(self):
        return np.zeros((4, 4, 3), np.uint8)


def test_a_running_video_is_refused_in_both_directions(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "moviepy", ModuleType("moviepy"))  # it is asked for, and not used here
    video = gw.RecordVideo(Painted(), str(tmp_path / "films"), episode_trigger=lambda episode: False)
    env = SnapshotEnv(video)
    env.reset(seed=0)
    snapshot = env.snapshot()
    video.start_recording("film")
    with pytest.raises(SnapshotError, match="RecordVideo: it is recording"):
        env.snapshot()
    with pytest.raises(SnapshotError, match="RecordVideo: it is recording"):
        env.restore(snapshot)
    video.recording = False
    env.restore(snapshot)
