"""Making environments by id and configuration, and naming their tasks. No benchmark is known here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

import bpo_envs  # noqa: F401  (registers the suite's ids)
from wrappers import SnapshotEnv


class InputError(ValueError):
    """A configuration that turns out not to fit the environment once episodes are played."""


@dataclass(frozen=True)
class EnvironmentOptions:
    """What to make.

    Attributes:
        id: a Gymnasium id; "module:id" imports the module first.
        kwargs: keyword arguments of the environment.
        wrappers: wrapper classes by import path, "package.module:Class", applied in order, innermost first.
        max_episode_steps: step limit; None keeps the id's own.
    """

    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[str] = ()
    max_episode_steps: int | None = None


def load_object(path: str) -> Any:
    """Import what "package.module:name" names.

    Raises:
        ValueError: the path has another form, or names nothing.
    """
    module, separator, name = path.partition(":")
    if not separator:
        raise ValueError(f"{path!r} is no import path; expected 'package.module:name'")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot import {path!r}: {error}") from error


def make_environment(options: EnvironmentOptions, **overrides: Any) -> SnapshotEnv:
    """Make the environment with its wrappers; the outermost one takes snapshots of the whole stack.

    `overrides` are keyword arguments that win over `options.kwargs` (the split, mostly).

    Raises:
        ValueError: there is no such id, module or wrapper, or one of them refuses what it is given.
    """
    limit = {} if options.max_episode_steps is None else {"max_episode_steps": options.max_episode_steps}
    kwargs = {**options.kwargs, **overrides}
    wrappers = [load_object(path) for path in options.wrappers]
    try:
        env: gym.Env = gym.make(options.id, disable_env_checker=True, **limit, **kwargs)
        if wrappers and isinstance(env, SnapshotEnv):
            env = env.env  # one stands outermost again below; two would do the work twice
        for wrapper in wrappers:
            env = wrapper(env)
    except (gym.error.Error, ImportError, TypeError) as error:
        raise ValueError(
            f"cannot make {options.id!r} with {kwargs} and {list(options.wrappers)}: {error}"
        ) from error
    return env if isinstance(env, SnapshotEnv) else SnapshotEnv(env)


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a panel: how to reset to it, and its name."""

    index: int
    id: str
    seeded: bool = False  # the environment has no panel: the index is a seed

    def reset_arguments(self, seed: int) -> dict[str, Any]:
        """Arguments of `reset`; `seed` is of the environment's own randomness, where that isn't the task."""
        return {"seed": self.index} if self.seeded else {"seed": seed, "options": {"index": self.index}}


@dataclass(frozen=True)
class Tasks:
    """The tasks of one split, in canonical order, with the digest of their contents ("" for mere seeds)."""

    tasks: tuple[Task, ...]
    digest: str

    def __len__(self) -> int:
        return len(self.tasks)

    def at(self, cursor: int, seed: int) -> Task:
        """The task that stands at `cursor` of an endless sequence of seeded shuffles."""
        epoch, position = divmod(cursor, len(self.tasks))
        order = np.random.default_rng(np.random.SeedSequence((seed, epoch))).permutation(len(self.tasks))
        return self.tasks[int(order[position])]


def tasks_of(env: gym.Env, seeds: int = 1000) -> Tasks:
    """The environment's task panel; an environment without one gets its seeds 0..`seeds`-1 for tasks.

    Raises:
        ValueError: the panel is empty.
    """
    if not env.has_wrapper_attr("task_panel"):
        return Tasks(tuple(Task(i, f"seed-{i}", seeded=True) for i in range(seeds)), "")
    panel = env.get_wrapper_attr("task_panel")
    if not len(panel):
        raise ValueError(f"the task panel {panel.benchmark}/{panel.split} is empty; choose another split")
    return Tasks(tuple(Task(i, task_id) for i, task_id in enumerate(panel.task_ids)), panel.digest)


EnvironmentFactory = Callable[[], SnapshotEnv]
