"""Healthy environments, several of which do what sick ones do, without any influence on what happens next."""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium import wrappers as gw

from wrappers import SnapshotEnv
from zoo.orchard import EAT, PICK, WALK, Gusty, Orchard, Text


class PureCache(Orchard):
    """A cache in the module, one in the class and one in the instance; each could be emptied at any time."""

    worths: dict = {}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.sums = {}

    def worth(self):
        key = tuple(self.apples), self.tree
        if key not in self.worths:
            if len(self.worths) > 500:
                self.worths.clear()
            self.worths[key] = super().worth()
        if len(self.sums) > 50:
            self.sums.clear()
        self.sums[key] = self.worths[key]
        return self.sums[key] * bonus(self.tree)


@functools.lru_cache(maxsize=64)
def bonus(tree):
    return 1 + tree / 100


class OwnGenerator(Orchard):
    """A generator of its own, which is in the state."""

    def __init__(self):
        super().__init__()
        self.dice = random.Random(0)

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.dice.seed(seed)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += self.dice.gauss(0, 0.1)
        return super().step(action)

    def get_state(self):
        return {**super().get_state(), "dice": self.dice.getstate()}

    def set_state(self, state):
        super().set_state(state)
        self.dice.setstate(state["dice"])


class TellsTheTime(Orchard):
    """A clock in the info, under a name that is a clock's by convention."""

    def tell(self):
        return {**super().tell(), "wall_time": time.time()}


class ReusesItsBuffer(Orchard):
    """Always returns the same array, filled anew, and the apples themselves in the info."""

    def __init__(self):
        super().__init__()
        self.buffer = np.zeros(4)

    def observe(self):
        self.buffer[:] = super().observe()
        return self.buffer

    def tell(self):
        return {"apples": self.apples}


class ThreadsThatEnd(Orchard):
    """Threads within a step, awaited before it ends."""

    def worth(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(super(ThreadsThatEnd, self).worth()))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: found[0]).result()


class ProcessesThatEnd(Orchard):
    """A child process within some steps, awaited."""

    def step(self, action):
        if self.clock == 3:
            subprocess.run(["true"], check=True)
        return super().step(action)


class ScratchFiles(Orchard):
    """A temporary file within a step."""

    def worth(self):
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write(repr(super().worth()))
            file.seek(0)
            return float(file.read())


class FileTree(Orchard):
    """Its state lies in a folder; a snapshot is a copy of it, given back when the snapshot is closed."""

    snapshot_capability = "filesystem"

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="tree-"))

    def reset(self, *, seed=None, options=None):
        (self.home / "eaten").write_text("")
        return super().reset(seed=seed)

    def step(self, action):
        if action == EAT:
            with (self.home / "eaten").open("a") as file:
                file.write("x")
        self.strength += 0.01 * len((self.home / "eaten").read_text())
        return super().step(action)

    def get_state(self):
        layer = Path(tempfile.mkdtemp(prefix="layer-"))
        shutil.copy(self.home / "eaten", layer)
        return {**super().get_state(), "layer": str(layer)}

    def set_state(self, state):
        super().set_state(state)
        shutil.copy(Path(state["layer"]) / "eaten", self.home)

    def release_state(self, state):
        shutil.rmtree(state["layer"], ignore_errors=True)

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)


class BoundedHistory(Orchard):
    """Remembers its last 300 observations, and no more."""

    def __init__(self):
        super().__init__()
        self.history = deque(maxlen=300)

    def observe(self):
        self.history.append(super().observe())
        return self.history[-1].copy()


class NotANumber(Orchard):
    """NaN and infinities in observations and infos."""

    def observe(self):
        return np.append(super().observe()[:2], [np.nan, -np.inf])

    def tell(self):
        return {**super().tell(), "unknown": float("nan"), "none": None}


class Compound(Orchard):
    """Dict observations, compound actions, numpy scalars, nested infos."""

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Dict({"what": spaces.Discrete(4), "how": spaces.MultiBinary(2)})
        self.observation_space = spaces.Dict(
            {"tree": spaces.Discrete(6), "rest": spaces.Box(-np.inf, np.inf, (4,), np.float64)}
        )

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(int(action["what"]))
        return observation, np.float32(reward), np.bool_(terminated), truncated, info

    def observe(self):
        return {"tree": np.int64(self.tree), "rest": super().observe()}

    def tell(self):
        return {"apples": tuple(self.apples), "who": {"name": "picker", "bytes": b"\0"}}


class Handle:
    """An object without equality."""


class ObjectsInInfo(Orchard):
    """Objects without equality in the info: they cannot be compared, and the report says so."""

    def tell(self):
        return {**super().tell(), "handle": Handle()}


class EndsAsTold(Orchard):
    """Knows its step limit, which SnapshotEnv tells it, and counts in its state."""

    step_limit = None

    def tell(self):
        left = None if self.step_limit is None else self.step_limit - self.clock
        return {**super().tell(), "steps_left": left}


class FreshEntropy(Orchard):
    """A reset without a seed draws new entropy."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed if seed is not None else int(np.random.SeedSequence().entropy % 2**32))


class Strict(Orchard):
    """Raises for actions that its mask forbids."""

    def step(self, action):
        if action == EAT and not self.apples:
            raise ValueError("nothing to eat")
        return super().step(action)

    def tell(self):
        return {**super().tell(), "action_mask": np.array([1, bool(self.apples), 1, 1], np.int8)}


class SetOfActions(Text):
    """Admissible actions as a set, of which the order differs from process to process."""

    def tell(self):
        return {**super().tell(), "admissible_actions": set(super().tell()["admissible_actions"])}


class LooksAtFiles(Orchard):
    """Reads a file that it never writes."""

    def worth(self):
        return super().worth() + len(Path(__file__).read_text()) % 10


class LogsToMemory(Orchard):
    """Counts in the class, for statistics that nobody reads."""

    steps_of_all = 0

    def step(self, action):
        LogsToMemory.steps_of_all += 1
        return super().step(action)


class Closure(gym.Env):
    """State in closures: for strategy 'deepcopy' and 'replay' only."""

    def __init__(self):
        self.inner = Orchard()
        self.action_space, self.observation_space = self.inner.action_space, self.inner.observation_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.inner.np_random = self.np_random
        return self.inner.reset()

    def step(self, action):
        return self.inner.step(action)


class Endless(Orchard):
    """No end of its own, dense rewards, a limit outside."""

    def done(self):
        return False

    def step(self, action):
        if len(self.apples) > 6:
            self.apples.clear()
        observation, _, terminated, truncated, info = super().step(action)
        return observation, -abs(self.tree - 3) + 0.01 * self.strength, terminated, truncated, info


class Mood(gym.Wrapper):
    """A wrapper of one's own that is captured."""

    def __init__(self, env):
        super().__init__(env)
        self.mood = 0.0

    def reset(self, **kwargs):
        self.mood = 0.0
        return self.env.reset(**kwargs)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.mood = 0.9 * self.mood + (action == PICK) - (action == WALK)
        return observation, reward + self.mood, terminated, truncated, info

    def get_state(self):
        return self.mood

    def set_state(self, state):
        self.mood = float(state)


def tall_stack():
    env = gw.RecordEpisodeStatistics(gw.TimeLimit(Endless(), 20))
    env = gw.NormalizeReward(gw.NormalizeObservation(env))
    return gw.FrameStackObservation(Mood(env), 3)


def sticky_stack():
    env = gw.StickyAction(gw.TimeLimit(Orchard(), 15), 0.3)
    return gw.TimeAwareObservation(gw.DelayObservation(env, 2))


def limited():
    return gw.TimeLimit(EndsAsTold(), 12)


def copied():
    return SnapshotEnv(gw.TimeLimit(Closure(), 20), strategy="deepcopy")


def replayed():
    return SnapshotEnv(gw.TimeLimit(Closure(), 20), strategy="replay")


def nested():
    return SnapshotEnv(gw.RecordEpisodeStatistics(SnapshotEnv(gw.TimeLimit(Text(), 20))))


def gymnasium_make(env_id, **kwargs):
    def make():
        return gym.make(env_id, **kwargs)

    make.__qualname__ = env_id
    return make


OURS = [
    Orchard,
    Text,
    Gusty,
    PureCache,
    OwnGenerator,
    TellsTheTime,
    ReusesItsBuffer,
    ThreadsThatEnd,
    ProcessesThatEnd,
    ScratchFiles,
    FileTree,
    BoundedHistory,
    NotANumber,
    Compound,
    ObjectsInInfo,
    FreshEntropy,
    Strict,
    SetOfActions,
    LooksAtFiles,
    LogsToMemory,
    tall_stack,
    sticky_stack,
    limited,
    copied,
    replayed,
    nested,
]
GYMNASIUM = [
    gymnasium_make("FrozenLake-v1"),
    gymnasium_make("Taxi-v4", max_episode_steps=30),
    gymnasium_make("Blackjack-v1"),
    gymnasium_make("CliffWalking-v1", max_episode_steps=40),
    gymnasium_make("CartPole-v1"),
    gymnasium_make("Pendulum-v1"),
    gymnasium_make("MountainCar-v0"),
    gymnasium_make("MountainCarContinuous-v0", max_episode_steps=50),
    gymnasium_make("Acrobot-v1"),
]
