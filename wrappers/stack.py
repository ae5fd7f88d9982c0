"""What the wrappers between a base environment and its SnapshotEnv remember, and how to put it back.

A time limit counts steps, a frame stack keeps frames: restoring the base environment alone would leave
them in another episode. The wrappers of Gymnasium are known (table.py). A wrapper of your own brings
`get_state()` and `set_state(state)`; one that has instance attributes and brings neither is refused by
name, because nothing tells its settings from its memory.
"""

from __future__ import annotations

import inspect
from collections import deque
from operator import attrgetter
from typing import Any

import gymnasium as gym

from .codec import copy_plain
from .errors import CodecError, SnapshotError, brief
from .table import TABLE, Memory

_BARE = frozenset(
    {"env", "_action_space", "_observation_space", "_metadata", "_cached_spec", "_saved_kwargs"}
)


class _TableLayer:
    """A wrapper of Gymnasium, captured as the table says."""

    def __init__(self, wrapper: gym.Wrapper, memory: Memory) -> None:
        self.wrapper, self.memory = wrapper, memory
        self.passes = memory.passes
        self._getters = [attrgetter(name) for name in memory.fields]

    def trouble(self) -> str | None:
        return self.memory.busy(self.wrapper)

    def capture(self) -> tuple:
        values = [get(self.wrapper) for get in self._getters]
        return tuple([copy_plain(tuple(v) if type(v) is deque else v) for v in values])

    def check(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != len(self.memory.fields):
            raise SnapshotError(f"expected {len(self.memory.fields)} values, got {brief(state)}")
        for (name, check), value in zip(self.memory.fields.items(), state):
            if not check(value, self.wrapper):
                raise SnapshotError(f"{name} cannot be {brief(value)}")

    def restore(self, state: tuple) -> None:
        for name, value in zip(self.memory.fields, copy_plain(state)):
            *path, last = name.split(".")
            owner = attrgetter(".".join(path))(self.wrapper) if path else self.wrapper
            now = getattr(owner, last)
            if type(now) is deque:
                now.clear()
                now.extend(value)
            else:
                setattr(owner, last, value)
        self.memory.after(self.wrapper)


class _OwnLayer:
    """A wrapper that brings get_state() and set_state(state); set_state checks what it gets."""

    passes = False

    def __init__(self, wrapper: Any) -> None:
        self.wrapper = wrapper

    def trouble(self) -> str | None:
        return None

    def capture(self) -> Any:
        return copy_plain(self.wrapper.get_state())

    def check(self, state: Any) -> None:
        pass

    def restore(self, state: Any) -> None:
        self.wrapper.set_state(copy_plain(state))


class _UnknownLayer:
    """A wrapper nobody described: fine as long as it has no attributes of its own."""

    passes = False

    def __init__(self, wrapper: gym.Wrapper) -> None:
        self.wrapper = wrapper

    def trouble(self) -> str | None:
        names = sorted(set(vars(self.wrapper)) - _BARE)
        if not names:
            return None
        return (
            f"it has instance attributes ({', '.join(names)}) and nothing says which of them change during "
            "an episode; give it get_state() and set_state(state) (returning None if none do), "
            "or use strategy='deepcopy'"
        )

    def capture(self) -> None:
        return None

    def check(self, state: Any) -> None:
        if state is not None:
            raise SnapshotError(f"expected nothing, got {brief(state)}")

    def restore(self, state: None) -> None:
        pass


def brings_state(env: Any) -> bool:
    """Whether the class of `env` has get_state() and set_state(state), with just these arguments.

    MuJoCo's environments have a set_state(qpos, qvel), which is something else.
    """
    try:
        inspect.signature(type(env).get_state).bind(env)
        inspect.signature(type(env).set_state).bind(env, None)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _layer(wrapper: gym.Wrapper) -> _TableLayer | _OwnLayer | _UnknownLayer:
    kind = type(wrapper)
    if brings_state(wrapper):
        return _OwnLayer(wrapper)
    if kind.__module__.startswith("gymnasium.wrappers.") and kind.__name__ in TABLE:
        return _TableLayer(wrapper, TABLE[kind.__name__])
    return _UnknownLayer(wrapper)


class Stack:
    """The wrappers of `env`, outermost first, down to (not including) the base environment.

    layers: those that have a part in state and configuration; a checker has none, nor has a wrapper of the
        class `nested` (an inner SnapshotEnv).
    """

    def __init__(self, env: gym.Env, nested: type[gym.Wrapper]) -> None:
        self.wrappers: list[gym.Wrapper] = []
        while isinstance(env, gym.Wrapper):
            self.wrappers.append(env)
            env = env.env
        self.base = env
        self.nested: list[Any] = [w for w in self.wrappers if isinstance(w, nested)]
        layers = [_layer(w) for w in self.wrappers if w not in self.nested]
        self._checkers = [x for x in layers if isinstance(x, _TableLayer) and x.memory.transparent]
        self.layers = [layer for layer in layers if layer not in self._checkers]
        self.passes_observations = all(layer.passes for layer in self.layers)

    def troubles(self) -> list[str]:
        """Why the wrappers cannot be captured now: one sentence each, naming the wrapper. Empty: they can."""
        found = [(layer.wrapper, layer.trouble()) for layer in self.layers]
        return [f"{_name(wrapper)}: {why}" for wrapper, why in found if why]

    def capture(self) -> tuple:
        """The state of every layer, plain data. Raises SnapshotError naming a wrapper that has none."""
        for layer in self.layers:
            if layer.trouble():
                raise SnapshotError("cannot capture the wrapper stack: " + "; ".join(self.troubles()))
        states = []
        for layer in self.layers:
            try:
                states.append(layer.capture())
            except CodecError as error:
                raise SnapshotError(f"state of the wrapper {_name(layer.wrapper)}: {error}") from None
        return tuple(states)

    def check(self, states: Any) -> None:
        """Raises SnapshotError, having changed nothing, where `states` cannot be restored here."""
        if type(states) is not tuple or len(states) != len(self.layers):
            raise SnapshotError(f"expected the states of {len(self.layers)} wrappers, got {brief(states)}")
        for layer, state in zip(self.layers, states):
            try:
                layer.check(state)
            except SnapshotError as error:
                raise SnapshotError(f"state of the wrapper {_name(layer.wrapper)}: {error}") from None
        if self.troubles():
            raise SnapshotError("cannot restore the wrapper stack: " + "; ".join(self.troubles()))

    def restore(self, states: tuple) -> None:
        """Puts back what `capture` returned on this stack or an equal one."""
        for layer, state in zip(self.layers, states):
            layer.restore(state)
        for layer in self._checkers:
            layer.memory.after(layer.wrapper)

    def time_limit(self) -> int | None:
        """Steps until the tightest TimeLimit of the stack truncates, counted from a reset; None: no limit."""
        limits = [w._max_episode_steps for w in self.wrappers if isinstance(w, gym.wrappers.TimeLimit)]
        return min(limits, default=None)


def _name(wrapper: gym.Wrapper) -> str:
    kind = type(wrapper)
    return kind.__name__ if kind.__module__.startswith("gymnasium.") else f"{kind.__module__}.{kind.__name__}"
