"""Going back by doing it again: for environments that cannot say what their state is.

A snapshot is the way an episode was begun (seed, options, random generator and wrapper states before the
reset) and the actions since. Restoring resets and executes them again, and compares every observation,
reward and end of episode with what was recorded: an environment that does not repeat itself is found out
instead of being trusted. The cost grows with the episode: one environment step for each recorded action.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym

from . import codec
from .errors import CodecError, SnapshotError, brief
from .stack import Stack
from .strategies import Reset, capture_generator, restore_generator

_PRINT = 8  # bytes of digest kept of each step; infos are not compared, for they may hold clocks


class ReplayStrategy:
    """Records an episode as it runs; its payload is (beginning, actions, the prints of all outcomes)."""

    capability = "replay"

    def __init__(self, env: gym.Env, stack: Stack) -> None:
        self._env, self._stack = env, stack
        self._beginning: tuple = ()
        self._actions: list[Any] = []
        self._prints: list[bytes] = []

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        generator = capture_generator(self._stack.base) if seed is None else None
        beginning = (seed, copy.deepcopy(options), generator, self._stack.capture())
        observation, info = self._env.reset(seed=seed, options=options)
        self._beginning = beginning
        self._actions, self._prints = [], [_print(observation)]
        return observation, info

    def step(self, action: Any) -> tuple:
        action_before = copy.deepcopy(action)
        result = self._env.step(action)
        self._actions.append(action_before)
        self._prints.append(_print(result[:4]))
        return result

    def capture(self) -> tuple:
        return self._beginning, tuple(self._actions), b"".join(self._prints)

    def restore(self, payload: Any) -> Reset:
        beginning, actions, prints = _checked(payload)
        seed, options, generator, wrappers = beginning
        self._stack.check(wrappers)
        if generator is not None:
            restore_generator(self._stack.base, generator)
        self._stack.restore(wrappers)
        observation, info = self._env.reset(seed=seed, options=copy.deepcopy(options))
        _compare(0, _print(observation), prints)
        for number, action in enumerate(actions, start=1):
            result = self._env.step(copy.deepcopy(action))
            _compare(number, _print(result[:4]), prints)
            observation, info = result[0], result[4]
        self._beginning, self._actions = beginning, list(actions)
        self._prints = [prints[at : at + _PRINT] for at in range(0, len(prints), _PRINT)]
        return observation, info

    def release(self, payload: Any) -> None:
        return None


def _print(outcome: Any) -> bytes:
    try:
        return codec.digest(codec.encode(outcome))[:_PRINT]
    except CodecError as error:
        raise SnapshotError(f"strategy 'replay' must compare observations and rewards: {error}") from None


def _compare(number: int, found: bytes, prints: bytes) -> None:
    if found != prints[number * _PRINT : (number + 1) * _PRINT]:
        what = f"step {number}" if number else "reset"
        raise SnapshotError(
            f"the replay went another way at its {what}: the environment does not repeat itself when it gets "
            "the same seed, options and actions, so strategy 'replay' cannot restore it"
        )


def _checked(payload: Any) -> tuple[tuple, tuple, bytes]:
    if type(payload) is tuple and len(payload) == 3:
        beginning, actions, prints = payload
        shapes = type(beginning) is tuple and len(beginning) == 4 and type(actions) is tuple
        if shapes and type(prints) is bytes and len(prints) == (len(actions) + 1) * _PRINT:
            return beginning, actions, prints
    raise SnapshotError(f"this is no record of an episode: {brief(payload)}")
