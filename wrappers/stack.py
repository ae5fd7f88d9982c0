"""What the wrappers between a base environment and its SnapshotEnv remember, and how to put it back.

A time limit counts steps, a frame stack keeps frames: restoring the base environment alone would leave
them in another episode. `TABLE` lists, for every wrapper of Gymnasium, the attributes that carry something
from one step to the next and what each may hold. A wrapper of your own brings `get_state()` and
`set_state(state)`; one that has instance attributes and brings neither is refused by name, because nothing
tells its settings from its memory. tests/wrappers/test_stack.py holds the table against Gymnasium's source.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import gymnasium as gym
import numpy as np

from .codec import copy_plain
from .errors import SnapshotError, brief

Check = Callable[[Any, gym.Wrapper], bool]  # may this value stand in that wrapper?


def flag(value: Any, wrapper: gym.Wrapper) -> bool:
    return isinstance(value, (bool, np.bool_))


def count(value: Any, wrapper: gym.Wrapper) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= -1)


def number(value: Any, wrapper: gym.Wrapper) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def array_or_number(value: Any, wrapper: gym.Wrapper) -> bool:
    return number(value, wrapper) or (isinstance(value, np.ndarray) and value.dtype.kind in "biufc")


def inner_observation(value: Any, wrapper: gym.Wrapper) -> bool:
    return bool(wrapper.env.observation_space.contains(value))


def inner_action(value: Any, wrapper: gym.Wrapper) -> bool:
    return bool(wrapper.env.action_space.contains(value))


def anything(value: Any, wrapper: gym.Wrapper) -> bool:
    return True


def optional(check: Check) -> Check:
    return lambda value, wrapper: value is None or check(value, wrapper)


def each(check: Check) -> Check:
    return lambda value, wrapper: type(value) in (list, tuple) and all(check(item, wrapper) for item in value)


def like_now(name: str) -> Check:
    """An array of the shape and dtype that the attribute has by construction."""

    def check(value: Any, wrapper: gym.Wrapper) -> bool:
        now = attrgetter(name)(wrapper)
        return np.shape(value) == np.shape(now) and getattr(value, "dtype", None) == now.dtype

    return check


@dataclass(frozen=True)
class Memory:
    """How one kind of wrapper is captured.

    fields: attributes (dotted paths allowed) that carry something from step to step -> what they may hold.
    scratch: attributes written after construction that carry nothing (a display window, a buffer that is
        overwritten before it is read, a clock).
    passes: observation and info leave the wrapper as they came in.
    transparent: not part of the configuration and without state of its own (a checker).
    busy: why the wrapper cannot be captured or restored right now, or None.
    after: called after a restore.
    """

    fields: Mapping[str, Check] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    passes: bool = False
    transparent: bool = False
    busy: Callable[[Any], str | None] = lambda wrapper: None
    after: Callable[[Any], None] = lambda wrapper: None


def _while_recording(wrapper: Any) -> str | None:
    return "it is recording a video; call its stop_recording() first" if wrapper.recording else None


def _restart_clock(wrapper: Any) -> None:
    wrapper.episode_start_time = time.perf_counter()  # episode.t counts from here: a clock cannot go back


def _forget_previous(wrapper: Any) -> None:
    # The checker compares each of its first observations with the one before, which a restore takes away.
    if getattr(wrapper, "checked_data_reuse", True) is False:
        wrapper._previous_data = (None, {})


def _running_mean(name: str) -> dict[str, Check]:
    moments = {f"{name}.{part}": like_now(f"{name}.{part}") for part in ("mean", "var")}
    return {**moments, f"{name}.count": number, "_update_running_mean": flag}


_PASSES = Memory(passes=True)
_CHANGES = Memory()

TABLE: dict[str, Memory] = {
    # episode state
    "AtariPreprocessing": Memory({"lives": count, "game_over": flag, "obs_buffer": each(anything)}),
    "Autoreset": Memory({"autoreset": flag}, passes=True),
    "DelayObservation": Memory({"observation_queue": each(inner_observation)}),
    "FrameStackObservation": Memory(
        {"obs_queue": each(inner_observation), "padding_value": inner_observation}, scratch=("stacked_obs",)
    ),
    "MaxAndSkipObservation": Memory({"_obs_buffer": like_now("_obs_buffer")}),
    "NormalizeObservation": Memory(_running_mean("obs_rms")),
    "NormalizeReward": Memory(
        {**_running_mean("return_rms"), "discounted_reward": array_or_number}, passes=True
    ),
    "OrderEnforcing": Memory({"_has_reset": flag}, passes=True),
    "RecordEpisodeStatistics": Memory(
        {
            "episode_count": count,
            "episode_returns": array_or_number,
            "episode_lengths": count,
            "time_queue": each(number),
            "return_queue": each(array_or_number),
            "length_queue": each(count),
        },
        scratch=("episode_start_time",),
        after=_restart_clock,
    ),
    "RecordVideo": Memory(
        {"step_id": count, "episode_id": count},
        scratch=("recording", "recorded_frames", "render_history", "_video_name"),
        passes=True,
        busy=_while_recording,
    ),
    "RenderCollection": Memory({"frame_list": each(anything)}, passes=True),
    "StickyAction": Memory(
        {
            "last_action": optional(inner_action),
            "is_sticky_actions": flag,
            "num_repeats": count,
            "repeats_taken": count,
        },
        passes=True,
    ),
    "TimeAwareObservation": Memory({"timesteps": count}),
    "TimeLimit": Memory({"_elapsed_steps": optional(count)}, passes=True),
    # nothing to remember
    "PassiveEnvChecker": Memory(
        scratch=(
            "checked_reset",
            "checked_step",
            "checked_render",
            "close_called",
            "checked_data_reuse",
            "_previous_data",
        ),
        passes=True,
        transparent=True,
        after=_forget_previous,
    ),
    "HumanRendering": Memory(scratch=("window", "clock", "screen_size"), passes=True),
    **dict.fromkeys(
        ("AddWhiteNoise", "ObstructView", "ClipAction", "DiscretizeAction", "TransformAction"), _PASSES
    ),
    **dict.fromkeys(("RescaleAction", "ClipReward", "TransformReward"), _PASSES),
    **dict.fromkeys(("RepeatAction", "TransformObservation", "FilterObservation"), _CHANGES),
    **dict.fromkeys(("FlattenObservation", "GrayscaleObservation", "ResizeObservation"), _CHANGES),
    **dict.fromkeys(("ReshapeObservation", "RescaleObservation", "DtypeObservation"), _CHANGES),
    **dict.fromkeys(("DiscretizeObservation", "AddRenderObservation", "ArrayConversion"), _CHANGES),
    **dict.fromkeys(("JaxToNumpy", "JaxToTorch", "NumpyToTorch"), _CHANGES),
}

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
        return tuple([layer.capture() for layer in self.layers])

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
