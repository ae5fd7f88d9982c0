"""How an environment is captured: by its own state, by a copy in memory, or not at all.

A strategy drives the environment below its SnapshotEnv and turns a moment into a payload and back.
`StateStrategy` is the one to aim for; `DeepCopyStrategy` is for explicit wish; replay has its own module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from .codec import copy_plain
from .errors import CodecError, SnapshotError, brief
from .stack import Stack

Reset = tuple[Any, dict[str, Any]]  # observation, info
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class Strategy(Protocol):
    """reset and step drive the environment; capture and restore turn its moment into a payload and back."""

    capability: str

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset: ...

    def step(self, action: Any) -> tuple: ...

    def capture(self) -> Any: ...

    def restore(self, payload: Any) -> Reset: ...

    def release(self, payload: Any) -> Callable[[], None] | None: ...


class EnvironmentState(Protocol):
    """Explicit state of a base environment: the environment's own methods, or an adapter's."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any) -> Reset | None: ...


class StateStrategy:
    """Base state, random generator and wrapper states, all plain data, in a tuple of four parts.

    The fourth is the last observation and info. They travel where nothing can rebuild them: unless the
    environment declares `set_state_returns_observation = True` and no wrapper changes what it returns.
    They are copied when they pass, because the caller is free to change what it was given.
    """

    def __init__(self, env: gym.Env, stack: Stack, state: EnvironmentState) -> None:
        self._env, self._stack, self._state = env, stack, state
        self.capability = getattr(stack.base, "snapshot_capability", "exact")
        if self.capability not in ("exact", "filesystem"):
            raise SnapshotError(
                f"snapshot_capability of {type(stack.base).__name__} is {brief(self.capability)}, "
                "expected 'exact' or 'filesystem'"
            )
        rebuilt = getattr(state, "set_state_returns_observation", False) is True
        self._keeps_last = not (rebuilt and stack.passes_observations)
        self._last: Reset | None = None

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        observation, info = self._env.reset(seed=seed, options=options)
        if self._keeps_last:
            self._last = _copy_any(observation), _copy_any(info)
        return observation, info

    def step(self, action: Any) -> tuple:
        result = self._env.step(action)
        if self._keeps_last:
            self._last = _copy_any(result[0]), _copy_any(result[4])
        return result

    def capture(self) -> tuple:
        try:
            base = copy_plain(self._state.get_state())
        except CodecError as error:
            raise SnapshotError(f"get_state() of {type(self._stack.base).__name__}: {error}") from None
        return base, capture_generator(self._stack.base), self._stack.capture(), self._last

    def restore(self, payload: Any) -> Reset:
        try:
            base, generator, wrappers, last = payload
        except (TypeError, ValueError):
            raise SnapshotError(f"expected a payload of four parts, got {brief(payload)}") from None
        if (last is not None) != self._keeps_last or (self._keeps_last and not _is_reset(last)):
            raise SnapshotError(f"the last observation and info cannot be {brief(last)}")
        self._stack.check(wrappers)
        rebuilt = self._state.set_state(copy_plain(base))
        restore_generator(self._stack.base, generator)
        self._stack.restore(wrappers)
        if rebuilt is not None and not _is_reset(rebuilt):
            raise SnapshotError(
                f"set_state must return None or (observation, info), it returned {brief(rebuilt)}"
            )
        if self._keeps_last:
            self._last = last
            if rebuilt is None or not self._stack.passes_observations:
                return _copy_any(last[0]), _copy_any(last[1])
        elif rebuilt is None:
            raise SnapshotError("set_state returned None although set_state_returns_observation is True")
        return rebuilt

    def release(self, payload: Any) -> Callable[[], None] | None:
        release = getattr(self._state, "release_state", None)
        return None if release is None else lambda: release(payload[0])


class DeepCopyStrategy:
    """A deep copy of the whole stack below SnapshotEnv: any Python environment, this process only."""

    capability = "memory"

    def __init__(self, owner: gym.Wrapper) -> None:
        self._owner = owner
        self._last: Reset | None = None

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        observation, info = self._owner.env.reset(seed=seed, options=options)
        self._last = copy.deepcopy((observation, info))
        return observation, info

    def step(self, action: Any) -> tuple:
        result = self._owner.env.step(action)
        self._last = copy.deepcopy((result[0], result[4]))
        return result

    def capture(self) -> tuple:
        return copy.deepcopy(self._owner.env), self._last

    def restore(self, payload: Any) -> Reset:
        env, last = payload
        self._owner.env = copy.deepcopy(env)
        self._last = last
        return copy.deepcopy(last)

    def release(self, payload: Any) -> None:
        return None


class NoStrategy:
    """An environment that can be run and not captured; the reason is given when somebody tries."""

    capability = "none"

    def __init__(self, env: gym.Env, reason: str) -> None:
        self._env, self._reason = env, reason

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        return self._env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple:
        return self._env.step(action)

    def capture(self) -> Any:
        raise SnapshotError(self._reason)

    def restore(self, payload: Any) -> Reset:
        raise SnapshotError(self._reason)

    def release(self, payload: Any) -> None:
        return None


def capture_generator(base: gym.Env) -> tuple[dict, int | None]:
    """State and seed of `base.np_random`, created if it was not yet: what it draws later is state too."""
    generator = base.np_random
    if not isinstance(generator, np.random.Generator):
        raise SnapshotError(
            f"np_random of {type(base).__name__} is a {type(generator).__name__}, "
            "expected a numpy.random.Generator"
        )
    return dict(generator.bit_generator.state), base._np_random_seed


def restore_generator(base: gym.Env, saved: Any) -> None:
    """Puts back what `capture_generator` returned. Raises SnapshotError for anything else."""
    try:
        state, seed = saved
        name = state["bit_generator"]
        if name not in _BIT_GENERATORS or not (seed is None or type(seed) is int):
            raise ValueError(f"unknown bit generator or seed ({brief(name)}, {brief(seed)})")
        generator = base._np_random
        if generator is None or type(generator.bit_generator).__name__ != name:
            generator = np.random.Generator(getattr(np.random, name)(0))
            base.np_random = generator
        generator.bit_generator.state = state
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise SnapshotError(f"the state of np_random is malformed: {error!r}") from None
    base._np_random_seed = seed


def _is_reset(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[1], dict)


def _copy_any(value: Any) -> Any:
    """Plain data is copied fast; anything else (a tensor) may live in memory, and only `to_bytes` minds."""
    try:
        return copy_plain(value)
    except CodecError:
        return copy.deepcopy(value)
