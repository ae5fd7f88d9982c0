"""A vector environment whose parts can be snapshot, restored and forked: `make_vec(id, n, workers=0)`.

`reset` and `step` are Gymnasium's. Beside them, `snapshot(i)` and `restore(i, snapshot)` reach one part, and
`fork(source, targets)` continues one part in others. With workers the parts live in processes, an equal share
in each; snapshots travel between them as bytes.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from .hosts import Call, Host, Worker, start
from .snapshot import Snapshot
from .snapshot_env import SnapshotEnv
from .target import target_of


def make_vec(
    env: str | Callable[..., gym.Env],
    n: int,
    workers: int = 0,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    strategy: str = "auto",
    modules: Sequence[str] = (),
    **kwargs: Any,
) -> ForkableVectorEnv:
    """A vector of `n` equal environments that can be snapshot, restored and forked one by one.

    Args:
        env: an id, or a function that makes an environment.
        n: number of environments.
        workers: processes to spread them over; 0: all in this process.
        autoreset_mode: NEXT_STEP (Gymnasium's default: the step after an end resets) or DISABLED (an ended
            environment must be reset with options={"reset_mask": ...}, restored or forked onto).
        strategy: of SnapshotEnv.
        modules: imported first, for what they register.
        kwargs: for `gymnasium.make`, or for the function.

    Raises:
        ValueError: sizes or a mode that make no sense.
        RuntimeError: a worker could not make its environments; the message is the worker's.
    """
    mode = autoreset_mode if isinstance(autoreset_mode, AutoresetMode) else AutoresetMode(autoreset_mode)
    if mode is AutoresetMode.SAME_STEP:
        raise ValueError("autoreset_mode SAME_STEP is not offered here, expected NEXT_STEP or DISABLED")
    if n < 1 or workers < 0:
        raise ValueError(f"expected n >= 1 and workers >= 0, got n={n}, workers={workers}")
    target = target_of(env, kwargs, modules, strategy)
    if workers == 0:
        hosts: list[Host | Worker] = [Host(target, n)]
    else:
        hosts = start(target, [len(part) for part in np.array_split(range(n), min(workers, n))])
    return ForkableVectorEnv(hosts, target.make(), mode)


class ForkableVectorEnv(VectorEnv):
    """Made by `make_vec`."""

    def __init__(self, hosts: Sequence[Host | Worker], example: SnapshotEnv, mode: AutoresetMode) -> None:
        self._hosts = hosts
        self._places = [(host, slot) for host in hosts for slot in range(host.size)]
        self.num_envs = len(self._places)
        self.metadata = {**example.metadata, "autoreset_mode": mode}
        self.render_mode = example.render_mode
        self.capability = example.capability
        self.single_action_space = example.action_space
        self.single_observation_space = example.observation_space
        example.close()
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._mode = mode
        self._observations: list[Any] = [None] * self.num_envs
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._ends: weakref.WeakKeyDictionary[Snapshot, bool] = weakref.WeakKeyDictionary()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all parts, or those of options["reset_mask"]; an integer seed counts up."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        seeds = [None] * self.num_envs if seeds is None else list(seeds)
        if len(seeds) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} seeds, got {len(seeds)}")
        options = dict(options or {})
        mask = options.pop("reset_mask", np.ones(self.num_envs, np.bool_))
        if np.shape(mask) != (self.num_envs,) or np.asarray(mask).dtype != np.bool_:
            raise ValueError(f"expected a reset_mask of {self.num_envs} bools, got {mask!r}")
        chosen = np.flatnonzero(mask)
        infos: dict[str, Any] = {}
        calls = [(int(i), "reset", (seeds[i], options or None)) for i in chosen]
        for i, (observation, info) in zip(chosen, self._call(calls)):
            self._observations[i], self._ended[i] = observation, False
            infos = self._add_info(infos, info, int(i))
        return self._batch(), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps all parts. Raises RuntimeError for ended ones where automatic resets are disabled."""
        if self._mode is AutoresetMode.DISABLED and self._ended.any():
            raise RuntimeError(
                f"the episodes of {np.flatnonzero(self._ended).tolist()} have ended; reset them with "
                'options={"reset_mask": ...}, restore a snapshot, or fork another one onto them'
            )
        rewards = np.zeros(self.num_envs, np.float64)
        terminations, truncations = np.zeros((2, self.num_envs), np.bool_)
        infos: dict[str, Any] = {}
        calls: list[Call] = [
            (i, "reset", (None, None)) if self._ended[i] else (i, "step", (action,))
            for i, action in enumerate(iterate(self.action_space, actions))
        ]
        for (i, kind, _), answer in zip(calls, self._call(calls)):
            if kind == "step":
                self._observations[i], rewards[i], terminations[i], truncations[i], info = answer
            else:
                self._observations[i], info = answer
            infos = self._add_info(infos, info, i)
        self._ended = terminations | truncations
        return self._batch(), rewards, terminations, truncations.copy(), infos

    def snapshot(self, index: int) -> Snapshot:
        """A snapshot of one part. Raises SnapshotError as SnapshotEnv does, IndexError for no such part."""
        snapshot = self._one(index, "snapshot")
        self._ends[snapshot] = bool(self._ended[index])
        return snapshot

    def restore(self, index: int, snapshot: Snapshot) -> tuple[Any, dict[str, Any]]:
        """Puts one part where `snapshot` was taken; returns its observation and info of that moment.

        A snapshot that this vector did not take is held for one of an episode that goes on.
        """
        observation, info = self._one(index, "restore", snapshot)
        self._observations[index] = observation
        self._ended[index] = self._ends.get(snapshot, False)
        return copy.deepcopy(observation), info

    def fork(self, source: int, targets: Iterable[int]) -> tuple[Any, dict[str, Any]] | None:
        """Continues part `source` in all `targets` as well: same state, random generator included.

        Returns the observation and info of the moment, None for no targets.
        """
        answer = None
        with self.snapshot(source) as snapshot:
            for target in targets:
                answer = self.restore(target, snapshot)
        return answer

    def close_extras(self, **kwargs: Any) -> None:
        for host in self._hosts:
            host.close()

    def _batch(self) -> Any:
        missing = [i for i, observation in enumerate(self._observations) if observation is None]
        if missing:
            raise RuntimeError(f"environments {missing} were never reset; call reset() without a mask first")
        empty: Any = create_empty_array(self.single_observation_space, n=self.num_envs)
        return copy.deepcopy(concatenate(self.single_observation_space, self._observations, empty))

    def _one(self, index: int, method: str, *arguments: Any) -> Any:
        if not 0 <= index < self.num_envs:
            raise IndexError(f"there are environments 0 to {self.num_envs - 1}, got {index}")
        return self._call([(index, method, arguments)])[0]

    def _call(self, calls: Sequence[Call]) -> list[Any]:
        """Carries out (index, method, arguments); workers do their parts at the same time."""
        by_host: dict[Any, list[int]] = {}
        for number, (index, _, _) in enumerate(calls):
            by_host.setdefault(self._places[index][0], []).append(number)
        for host, numbers in by_host.items():
            host.send([(self._places[calls[n][0]][1], *calls[n][1:]) for n in numbers])
        answers: list[Any] = [None] * len(calls)
        errors = []
        for host, numbers in by_host.items():  # all are heard before one is raised, or the next call would
            try:  # get the answer of this one
                for number, answer in zip(numbers, host.receive()):
                    answers[number] = answer
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return answers
