"""Chosen violations of faithful restoring, to measure how much fidelity a learner needs.

`FaultInjector(env, kind, rate)` is a SnapshotEnv that errs: with probability `rate` a restore (or, for late
answers, a step after a restore) goes wrong in one way. What is drawn for that lies outside of snapshots, so
that siblings of one branch point suffer different faults. Nothing in observations or infos tells of a fault.
"""

from __future__ import annotations

import copy
import random
import weakref
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from .snapshot import Snapshot
from .snapshot_env import SnapshotEnv

KINDS = {
    "late answer": "after a restore, a step shows the page before it instead of its own",
    "generator": "a restore leaves the random generator where it was",
    "lost write": "a restore goes back to before the last step, and shows the page after it",
    "stale state": "a restore shows the right page, and leaves everything else where it was",
}
"""The kinds of faults, and what each does."""


class FaultInjector(SnapshotEnv):
    """A SnapshotEnv whose restores are wrong now and then.

    Args:
        env: any environment that SnapshotEnv takes.
        kind: one of `KINDS`.
        rate: probability of a fault, at each restore or (late answers) at each step after one.
        seed: of the faults' own randomness; None: fresh entropy.
        strategy: as of SnapshotEnv.

    Attributes:
        faults: how many there were so far.
    """

    def __init__(
        self, env: gym.Env, kind: str, rate: float, seed: int | None = None, strategy: str = "auto"
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"unknown kind of fault {kind!r}, expected one of {', '.join(KINDS)}")
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"expected a rate from 0 to 1, got {rate!r}")
        RecordConstructorArgs.__init__(self, kind=kind, rate=rate, seed=seed, strategy=strategy)
        SnapshotEnv.__init__(self, env, strategy)
        self.kind, self.rate, self.faults = kind, rate, 0
        self._chance = random.Random(seed)
        self._restored = False
        self._over = False
        self._page: tuple[Any, dict[str, Any]] | None = None
        self._before: Snapshot | None = None  # the last step
        self._previous: weakref.WeakKeyDictionary[Snapshot, Snapshot] = weakref.WeakKeyDictionary()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        observation, info = super().reset(seed=seed, options=options)
        self._restored, self._over, self._before = False, False, None
        return self._show(observation, info)

    def step(self, action: Any) -> tuple:
        if self.kind == "lost write":
            self._before = super().snapshot()
        page = self._page
        observation, reward, terminated, truncated, info = super().step(action)
        self._over = bool(terminated or truncated)
        self._show(observation, info)
        if self.kind == "late answer" and self._restored and page is not None and self._errs():
            observation, info = copy.deepcopy(page)
        return observation, reward, terminated, truncated, info

    def snapshot(self) -> Snapshot:
        taken = super().snapshot()
        if self._before is not None:
            self._previous[taken] = self._before
        return taken

    def restore(self, snapshot: Snapshot) -> tuple[Any, dict[str, Any]]:
        """As of SnapshotEnv, but for the fault. Of a snapshot read from bytes no lost write is known."""
        generator = copy.deepcopy(self.unwrapped._np_random)
        stale = super().snapshot() if self.kind == "stale state" and self._goes_on() else None
        page = super().restore(snapshot)
        lost = self._previous.get(snapshot) if isinstance(snapshot, Snapshot) else None
        if self.kind == "generator" and generator is not None and self._errs():
            self.unwrapped.np_random = generator
        elif self.kind == "lost write" and lost is not None and self._errs():
            super().restore(lost)
        elif stale is not None and self._errs():
            super().restore(stale)
        self._restored, self._over, self._before = True, False, lost
        return self._show(*page)

    def _goes_on(self) -> bool:
        return self._refusal is None and not self._over

    def _errs(self) -> bool:
        errs = self._chance.random() < self.rate
        self.faults += errs
        return errs

    def _show(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if self.kind == "late answer":
            self._page = copy.deepcopy((observation, info))
        return observation, info
