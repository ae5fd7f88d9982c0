"""Sick in what they capture and restore: coverage, round trips, repeatability, transparency, counters."""

from __future__ import annotations

import json
import threading

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit

from zoo.orchard import EAT, PICK, WAIT, WALK, Orchard, Text

# --- coverage --------------------------------------------------------------------------------------------


class NoState(gym.Env):
    """Has no get_state and set_state at all."""

    def __init__(self):
        self.inner = Orchard()
        self.action_space, self.observation_space = self.inner.action_space, self.inner.observation_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.inner.reset(seed=seed)

    def step(self, action):
        return self.inner.step(action)


class Forgetful(gym.Wrapper):
    """A wrapper with memory that nobody described."""

    streak = 0

    def step(self, action):
        self.streak = self.streak + 1 if action == PICK else 0
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward + self.streak, terminated, truncated, info


def unknown_wrapper():
    return TimeLimit(Forgetful(Orchard()), 30)


class HandsOutAnObject(Orchard):
    """Its state holds an object that is no data."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def get_state(self):
        return {**super().get_state(), "lock": self.lock}


class FailsToCaptureLater(Orchard):
    """Capturing works in the beginning only: the first apple brings an object into the state."""

    def get_state(self):
        state = super().get_state()
        return {**state, "apples": [np.array([w], dtype=object) for w in state["apples"]]}


class CapturesNoSets(Orchard):
    """A set is no plain data."""

    def __init__(self):
        super().__init__()
        self.visited = set()

    def step(self, action):
        self.visited.add(self.tree)
        return super().step(action)

    def get_state(self):
        return {**super().get_state(), "visited": self.visited}


# --- round trip ------------------------------------------------------------------------------------------


class RoundsItsState(Orchard):
    """Two digits are saved of a number that has sixteen."""

    def get_state(self):
        return {**super().get_state(), "strength": round(self.strength, 2)}


class SinglePrecision(Orchard):
    """Weights are saved as 32-bit floats."""

    def get_state(self):
        return {**super().get_state(), "apples": np.array(self.apples, np.float32)}

    def set_state(self, state):
        super().set_state({**state, "apples": [float(weight) for weight in state["apples"]]})


class StartsAgain(Orchard):
    """set_state puts the place back, and the clock to zero."""

    def set_state(self, state):
        super().set_state({**state, "clock": 0})


class ReseedsOnRestore(Orchard):
    """Draws from a generator of its own, which a restore seeds again."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.own, self.own_seed = np.random.default_rng(seed), seed
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += self.own.normal()
        return super().step(action)

    def get_state(self):
        return {**super().get_state(), "seed": self.own_seed}

    def set_state(self, state):
        super().set_state(state)
        self.own, self.own_seed = np.random.default_rng(state["seed"]), state["seed"]


class JsonKeys(Orchard):
    """State through JSON: integer keys come back as text and are not found any more."""

    def reset(self, *, seed=None, options=None):
        self.visits = {}
        return super().reset(seed=seed)

    def step(self, action):
        self.visits[self.tree] = self.visits.get(self.tree, 0) + 1
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward - 0.1 * self.visits.get(self.tree, 0), terminated, truncated, info

    def get_state(self):
        return json.dumps({**super().get_state(), "visits": self.visits})

    def set_state(self, state):
        state = json.loads(state)
        self.visits = state.pop("visits")
        super().set_state(state)


class StaleObservation(Text):
    """set_state returns what was seen last, not what the state shows."""

    def observe(self):
        self.seen = super().observe()
        return self.seen

    def set_state(self, state):
        Orchard.set_state(self, state)
        return getattr(self, "seen", "Nothing."), self.tell()


class IncompleteInfo(Text):
    """The info that a restore returns lacks the admissible actions."""

    def set_state(self, state):
        observation, info = super().set_state(state)
        return observation, {"apples": info["apples"]}


class ChangesDtype(Orchard):
    """After a restore observations are of another precision."""

    dtype = np.float64

    def observe(self):
        return super().observe().astype(self.dtype)

    def set_state(self, state):
        super().set_state(state)
        self.dtype = np.float32


class MissesTheLastStep(Orchard):
    """An episode about to end is saved as if it had more strength left."""

    def get_state(self):
        state = super().get_state()
        return {**state, "strength": max(state["strength"], 0.6)}


class RefusesToGoBackToTheBeginning(Orchard):
    """set_state mistakes a fresh episode for a malformed one."""

    def set_state(self, state):
        if not state["clock"]:
            raise ValueError("no step was taken yet")
        super().set_state(state)


# --- dirty round trip ------------------------------------------------------------------------------------


class ForgetsAField(Orchard):
    """A combo of picks counts for the reward and is not in the state."""

    combo = 0

    def reset(self, *, seed=None, options=None):
        self.combo = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.combo = self.combo + 1 if action == PICK else 0
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + 0.1 * self.combo, terminated, truncated, info


class ForgetsItsGenerator(Orchard):
    """Draws from a generator of its own, which is not in the state."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.own = np.random.default_rng(int(self.np_random.integers(2**31)))
        return self.observe(), self.tell()

    def step(self, action):
        self.strength += self.own.normal(0, 0.1)
        return super().step(action)


class ForgetsTheGoal(Orchard):
    """The tree that pays is drawn at the reset and stays out of the state."""

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed)
        self.goal = int(self.np_random.integers(6))
        return result

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + (self.tree == self.goal), terminated, truncated, info


class StaysOver(Orchard):
    """An ended episode stays ended: the flag is not in the state."""

    over = False

    def reset(self, *, seed=None, options=None):
        self.over = False
        return super().reset(seed=seed)

    def step(self, action):
        if self.over:
            raise RuntimeError("the episode is over")
        result = super().step(action)
        self.over = result[2]
        return result


class AddsInsteadOfReplacing(Orchard):
    """set_state adds the saved apples to those that are there."""

    def set_state(self, state):
        super().set_state({**state, "apples": state["apples"] + self.apples[len(state["apples"]) :]})


class SavesTheFirstMoment(Orchard):
    """A cached state is returned until the next reset."""

    cached = None

    def reset(self, *, seed=None, options=None):
        self.cached = None
        return super().reset(seed=seed)

    def get_state(self):
        if self.cached is None:
            state = super().get_state()
            self.cached = {**state, "apples": list(state["apples"])}
        return self.cached


class DelayedReward(Orchard):
    """What was eaten pays four steps later; the queue of payments is not in the state."""

    def reset(self, *, seed=None, options=None):
        self.due = [0.0] * 4
        return super().reset(seed=seed)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.due.append(5.0 if action == EAT else 0.0)
        return observation, reward + self.due.pop(0), terminated, truncated, info


class RareFlag(Orchard):
    """Waiting three times in a row breaks a branch, for good; only walking then shows it."""

    waits, broken = 0, False

    def reset(self, *, seed=None, options=None):
        self.waits, self.broken = 0, False
        return super().reset(seed=seed)

    def step(self, action):
        self.waits = self.waits + 1 if action == WAIT else 0
        self.broken |= self.waits >= 3
        if self.broken and action == WALK:
            self.strength -= 0.05
        return super().step(action)

    def get_state(self):
        return {**super().get_state(), "waits": self.waits}

    def set_state(self, state):
        super().set_state(state)
        self.waits = state["waits"]


# --- repeatability ---------------------------------------------------------------------------------------


class UsesItUp(Orchard):
    """The state is a ticket to a store, and a ticket is taken once."""

    store: dict = {}  # noqa: RUF012 (the defect)

    def get_state(self):
        ticket = len(self.store) + 1
        self.store[ticket] = super().get_state() | {"apples": list(self.apples)}
        return ticket

    def set_state(self, state):
        super().set_state(self.store.pop(state))


class CountsItsSnapshots(Orchard):
    """Each captured state carries a running number."""

    number = 0

    def get_state(self):
        self.number += 1
        return {**super().get_state(), "number": self.number}


class WearsOut(Orchard):
    """Every restore costs some strength."""

    restores = 0

    def set_state(self, state):
        self.restores += 1
        super().set_state({**state, "strength": state["strength"] - 0.01 * (self.restores // 4)})


class StampsItsState(Orchard):
    """The state says when it was taken."""

    def get_state(self):
        import time

        return {**super().get_state(), "taken": time.time_ns()}


# --- transparency ----------------------------------------------------------------------------------------


class DrawsWhenCaptured(Orchard):
    """Capturing draws a number from the generator."""

    def get_state(self):
        return {**super().get_state(), "salt": int(self.np_random.integers(100))}


class TidiesWhenCaptured(Orchard):
    """Capturing sorts the apples, and the heaviest is eaten first from then on."""

    def get_state(self):
        self.apples.sort()
        return super().get_state()


class PaysForSnapshots(Orchard):
    """Snapshots cost strength."""

    def get_state(self):
        state = super().get_state()
        self.strength -= 0.001
        return state


class FlushesWhenCaptured(Orchard):
    """A buffered wait is carried out early by a capture."""

    pending = 0

    def step(self, action):
        if action == WAIT:
            self.pending += 1
        elif self.pending:
            self.strength += 0.2 * self.pending
            self.pending = 0
        return super().step(action)

    def get_state(self):
        self.pending = 0
        return super().get_state()

    def reset(self, *, seed=None, options=None):
        self.pending = 0
        return super().reset(seed=seed)


# --- counters --------------------------------------------------------------------------------------------


class OwnLimit(Orchard):
    """Truncates after twelve steps of its own counting; the count is not in the state."""

    steps = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, self.steps >= 12, info


class LimitFromZero(OwnLimit):
    """A restore starts the count of steps again."""

    def set_state(self, state):
        super().set_state(state)
        self.steps = 0


class Patience(gym.Wrapper):
    """A step limit of one's own, whose get_state leaves out the count."""

    steps = 0

    def reset(self, **kwargs):
        self.steps = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        self.steps += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated or self.steps >= 9, info

    def get_state(self):
        return {"limit": 9}

    def set_state(self, state):
        pass


def forgetful_limit():
    return Patience(Orchard())


class Statistics(gym.Wrapper):
    """Episode statistics of one's own whose sums are not captured."""

    total = 0.0

    def reset(self, **kwargs):
        self.total = 0.0
        return self.env.reset(**kwargs)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.total += reward
        if terminated or truncated:
            info = {**info, "episode": {"r": self.total}}
        return observation, reward, terminated, truncated, info

    def get_state(self):
        return None

    def set_state(self, state):
        pass


def lossy_statistics():
    return Statistics(TimeLimit(Orchard(), 30))


SICK = {
    "coverage": [NoState, unknown_wrapper, HandsOutAnObject, FailsToCaptureLater, CapturesNoSets],
    "round trip": [
        RoundsItsState,
        SinglePrecision,
        StartsAgain,
        ReseedsOnRestore,
        JsonKeys,
        StaleObservation,
        IncompleteInfo,
        ChangesDtype,
        MissesTheLastStep,
        RefusesToGoBackToTheBeginning,
    ],
    "dirty round trip": [
        ForgetsAField,
        ForgetsItsGenerator,
        ForgetsTheGoal,
        StaysOver,
        AddsInsteadOfReplacing,
        SavesTheFirstMoment,
        DelayedReward,
        RareFlag,
    ],
    "repeatability": [UsesItUp, CountsItsSnapshots, WearsOut, StampsItsState],
    "transparency": [DrawsWhenCaptured, TidiesWhenCaptured, PaysForSnapshots, FlushesWhenCaptured],
    "counters": [OwnLimit, LimitFromZero, forgetful_limit, lossy_statistics],
}
