"""SnapshotEnv: any Gymnasium environment, with `snapshot()` and `restore(snapshot)`.

It stands outermost. Below it are the wrappers (stack.py) and the base environment, which are captured by a
strategy (strategies.py, replay.py). Nothing in an action reaches any of this.
"""

from __future__ import annotations

import contextlib
from typing import Any

import gymnasium as gym
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs

from .adapters import adapter_for
from .configuration import origin_of
from .errors import SnapshotError
from .replay import ReplayStrategy
from .snapshot import Snapshot
from .stack import Stack, brings_state
from .strategies import DeepCopyStrategy, EnvironmentState, NoStrategy, StateStrategy, Strategy

STRATEGIES = ("auto", "state", "replay", "deepcopy")


class SnapshotEnv(gym.Wrapper, RecordConstructorArgs):
    """Adds `snapshot()` and `restore(snapshot)` to `env`, its wrappers and its random generator included.

    strategy:
        "state": the base environment has get_state()/set_state(state), or an adapter exists for it;
        "replay": reset again and re-execute the actions, compared with what was recorded;
        "deepcopy": a copy in memory, for this process only;
        "auto": "state" where possible; otherwise the environment runs, and `snapshot` says what is missing.

    Around another SnapshotEnv it takes over its strategy, and the inner one has no part in the state.
    A base environment with an attribute `step_limit` is told the limit of its TimeLimit (None: no limit).
    """

    def __init__(self, env: gym.Env, strategy: str = "auto") -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy {strategy!r} is unknown, expected one of {', '.join(STRATEGIES)}")
        RecordConstructorArgs.__init__(self, strategy=strategy)
        gym.Wrapper.__init__(self, env)
        self._stack = Stack(env, nested=SnapshotEnv)
        if strategy == "auto" and self._stack.nested:
            strategy = self._stack.nested[0].strategy
        self.strategy: str = strategy
        self._strategy = self._choose(strategy)
        self._origin = origin_of(self._stack, self._strategy.capability)
        self._refusal: str | None = "no episode has begun"
        self._overtaken = False  # an outer SnapshotEnv went back, so what was recorded here is out of date
        if hasattr(self._stack.base, "step_limit"):
            with contextlib.suppress(AttributeError):  # a read-only one means something else
                self._stack.base.step_limit = self._stack.time_limit()

    @property
    def capability(self) -> str:
        """What snapshots of this environment can do (docs/snapshots.md): one of snapshot.CAPABILITIES."""
        return self._origin.capability

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        result = self._strategy.reset(seed, options)
        self._refusal, self._overtaken = None, False
        return result

    def step(self, action: Any) -> tuple:
        if self._refusal is not None:
            raise ResetNeeded(f"cannot step: {self._refusal}; call reset() or restore(snapshot) first")
        return self._strategy.step(action)

    def snapshot(self) -> Snapshot:
        """The present state of the environment; the environment is unchanged by it.

        Raises SnapshotError before the first reset, after a failed restore, and where the environment or a
        wrapper cannot be captured (the message names it).
        """
        if self._refusal is not None:
            raise SnapshotError(f"cannot take a snapshot: {self._refusal}; call reset() first")
        if self._overtaken:
            raise SnapshotError(
                "cannot take a snapshot: use the outermost SnapshotEnv, which was restored last"
            )
        payload = self._strategy.capture()
        return Snapshot(self._origin, payload, self._strategy.release(payload))

    def restore(self, snapshot: Snapshot) -> tuple[Any, dict[str, Any]]:
        """Puts the environment where it was when `snapshot` was taken.

        Returns the observation and info of that moment. Works any number of times, after the end of an
        episode, without a reset, and in another instance of the same id and configuration.
        Raises SnapshotError for a snapshot of another one and for malformed content. After content was
        refused the environment must be reset or restored before it can be stepped again.
        """
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(
                f"expected a Snapshot, got {type(snapshot).__name__} (bytes are read by Snapshot.from_bytes)"
            )
        if snapshot.origin != self._origin:
            raise SnapshotError(
                f"the snapshot belongs to another environment or configuration: it was taken of "
                f"{snapshot.origin}; this one is {self._origin}"
            )
        payload = snapshot.payload()
        self._refusal = "a restore failed half-way"
        try:
            result = self._strategy.restore(payload)
        except SnapshotError:
            raise
        except Exception as error:  # whatever the environment's set_state raises for content it cannot use
            raise SnapshotError(
                f"{self._origin.env_id} refused the content of the snapshot: {error!r}"
            ) from error
        self._refusal, self._overtaken = None, False
        for inner in self._stack.nested:
            inner._refusal, inner._overtaken = None, True
        return result

    def _choose(self, strategy: str) -> Strategy:
        if strategy == "deepcopy":
            return DeepCopyStrategy(self)
        if strategy == "replay":
            return ReplayStrategy(self.env, self._stack)
        try:
            return StateStrategy(self.env, self._stack, _state_of(self._stack.base))
        except SnapshotError as error:
            if strategy == "state":
                raise
            return NoStrategy(self.env, str(error))


def _state_of(base: Any) -> EnvironmentState:
    """The environment itself where it brings its state, else its adapter. Raises SnapshotError: neither."""
    if brings_state(base):
        return base
    adapter = adapter_for(base)
    if adapter is None:
        raise SnapshotError(
            f"{type(base).__name__} has no get_state() and set_state(state), and there is no adapter for it; "
            "write the two methods, or choose strategy='replay' or strategy='deepcopy'"
        )
    return adapter
