"""What each of Gymnasium's wrappers remembers from one step to the next, as a table.

An entry lists the attributes that make up the memory of a wrapper and what each may hold: a snapshot may
come from anywhere, so values are checked before they are put back. tests/wrappers/test_table.py holds the
table against the source of the installed Gymnasium: a wrapper missing here fails that test by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

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
    return _resembles(value, wrapper.env.observation_space)


def inner_action(value: Any, wrapper: gym.Wrapper) -> bool:
    return _resembles(value, wrapper.env.action_space)


def _resembles(value: Any, space: spaces.Space) -> bool:
    """Of the structure of `space`; the bounds of a Box are left out, for environments do overstep them."""
    if isinstance(space, spaces.Box):
        return np.shape(value) == space.shape and np.asarray(value).dtype.kind in "biuf"
    if isinstance(space, spaces.Dict):
        same = isinstance(value, dict) and value.keys() == space.keys()
        return same and all(_resembles(value[key], part) for key, part in space.items())
    if isinstance(space, spaces.Tuple):
        same = isinstance(value, tuple) and len(value) == len(space)
        return same and all(map(_resembles, value, space))
    return bool(space.contains(value))


def anything(value: Any, wrapper: gym.Wrapper) -> bool:
    return True


def optional(check: Check) -> Check:
    return lambda value, wrapper: value is None or check(value, wrapper)


def each(check: Check) -> Check:
    return lambda value, wrapper: type(value) in (list, tuple) and all(check(item, wrapper) for item in value)


def like_now(name: str) -> Check:
    """An array of the shape and kind of number that the attribute has by construction.

    Not of its precision: a running mean is made for the observations that a wrapper returns, and takes over
    the precision of those that it gets.
    """

    def check(value: Any, wrapper: gym.Wrapper) -> bool:
        now = attrgetter(name)(wrapper)
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        return np.shape(value) == np.shape(now) and kind == now.dtype.kind

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
