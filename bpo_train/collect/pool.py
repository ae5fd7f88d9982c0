"""The pool seam: many environments, stepped, snapshot and restored by slot number."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from wrappers import Snapshot, SnapshotEnv

from .environment import EnvironmentFactory, Task


@dataclass(frozen=True, slots=True)
class Observation:
    """What an environment shows.

    Attributes:
        text: the observation.
        info: the common info.
        reward: of the step that led here.
        ended: "" while the episode runs, else "terminated" or "step_limit".
    """

    text: str
    info: Mapping[str, Any]
    reward: float = 0.0
    ended: str = ""


@dataclass
class PoolMeters:
    """Counters of a pool since the trainer last set them anew; times in seconds, summed over environments."""

    steps: int = 0
    step_seconds: float = 0.0
    resets: int = 0
    snapshots: int = 0
    snapshot_seconds: float = 0.0
    restores: int = 0
    restore_seconds: float = 0.0
    peak_live_snapshots: int = 0
    peak_snapshot_bytes: int = 0


class Pool(Protocol):
    """Environments by slot. A slot is taken with `reset` or `restore` and given back with `release`."""

    meters: PoolMeters

    @property
    def live_snapshots(self) -> int:
        """Snapshots that have not been dropped."""
        ...

    @property
    def snapshot_bytes(self) -> int:
        """Their size, serialised; snapshots that exist in memory only count 0."""
        ...

    def reset(self, tasks: Sequence[Task], seeds: Sequence[int]) -> list[tuple[int, Observation]]:
        """Start an episode of each task, its environment seeded, in a slot of its own."""
        ...

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[Observation]:
        """Step each slot once."""
        ...

    def snapshot(self, slot: int) -> int:
        """Take a snapshot; return its handle."""
        ...

    def restore(self, handles: Sequence[int], seeds: Sequence[int | None]) -> list[tuple[int, Observation]]:
        """Continue from each snapshot in a slot of its own; a handle may be restored any number of times.

        A snapshot holds the environment's random generator: restored with seed None it repeats the same
        chances. Siblings are to be independent draws, so each continues with chances of its own, from its
        seed. (An environment that is captured by replay keeps the recorded ones, which it needs.)
        """
        ...

    def drop(self, handle: int) -> None:
        """Free a snapshot."""
        ...

    def release(self, slot: int) -> None:
        """Give a slot back; its episode is over or abandoned."""
        ...

    def close(self) -> None:
        """Close all environments and free all snapshots."""
        ...


@dataclass
class InProcessPool:
    """Environments in this process, made when needed and used again."""

    factory: EnvironmentFactory
    meters: PoolMeters = field(default_factory=PoolMeters)
    _envs: list[SnapshotEnv] = field(default_factory=list)
    _free: list[int] = field(default_factory=list)
    _snapshots: dict[int, Snapshot] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    snapshot_bytes: int = 0
    _next_handle: int = 0

    @property
    def live_snapshots(self) -> int:
        return len(self._snapshots)

    def reset(self, tasks: Sequence[Task], seeds: Sequence[int]) -> list[tuple[int, Observation]]:
        started = []
        for task, seed in zip(tasks, seeds):
            slot = self._take()
            text, info = self._envs[slot].reset(**task.reset_arguments(seed))
            self.meters.resets += 1
            started.append((slot, Observation(_text(text), info)))
        return started

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> list[Observation]:
        begin = time.perf_counter()
        seen = []
        for slot, action in zip(slots, actions):
            text, reward, terminated, truncated, info = self._envs[slot].step(action)
            ended = "terminated" if terminated else "step_limit" if truncated else ""
            seen.append(Observation(_text(text), info, float(reward), ended))
        self.meters.steps += len(seen)
        self.meters.step_seconds += time.perf_counter() - begin
        return seen

    def snapshot(self, slot: int) -> int:
        begin = time.perf_counter()
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        snapshot = self._envs[slot].snapshot()
        self.meters.snapshots += 1
        self.meters.snapshot_seconds += time.perf_counter() - begin
        self._snapshots[handle] = snapshot
        self._sizes[handle] = 0 if snapshot.capability == "memory" else snapshot.size
        self.snapshot_bytes += self._sizes[handle]
        self.meters.peak_live_snapshots = max(self.meters.peak_live_snapshots, self.live_snapshots)
        self.meters.peak_snapshot_bytes = max(self.meters.peak_snapshot_bytes, self.snapshot_bytes)
        return handle

    def restore(self, handles: Sequence[int], seeds: Sequence[int | None]) -> list[tuple[int, Observation]]:
        begin = time.perf_counter()
        started = []
        for handle, seed in zip(handles, seeds):
            slot = self._take()
            snapshot = self._snapshots[handle]
            text, info = self._envs[slot].restore(snapshot)
            if seed is not None and snapshot.capability != "replay":
                self._envs[slot].unwrapped.np_random = np.random.default_rng(seed)
            started.append((slot, Observation(_text(text), info)))
        self.meters.restores += len(started)
        self.meters.restore_seconds += time.perf_counter() - begin
        return started

    def drop(self, handle: int) -> None:
        self.snapshot_bytes -= self._sizes.pop(handle)
        self._snapshots.pop(handle).close()

    def release(self, slot: int) -> None:
        self._free.append(slot)

    def close(self) -> None:
        for handle in list(self._snapshots):
            self.drop(handle)
        for env in self._envs:
            env.close()
        self._envs.clear()
        self._free.clear()

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        self._envs.append(self.factory())
        return len(self._envs) - 1


def _text(observation: Any) -> str:
    if not isinstance(observation, str):
        raise TypeError(
            f"the environment's observation is a {type(observation).__name__}; a language policy needs text: "
            "wrap the environment so that it shows a str"
        )
    return observation
