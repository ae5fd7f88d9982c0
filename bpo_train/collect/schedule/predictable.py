"""Schedules that decide before the action is drawn, from what the backbone has seen so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from bpo_train.collect.entropy import decision_entropy
from bpo_train.collect.schedule.base import (
    SALT,
    DecisionView,
    PredictableSchedule,
    ScheduleOptions,
    register,
)
from bpo_train.tree import RolloutTree

WINDOW = 4096
"""Entropies of earlier decisions that the running quantile of `entropy-threshold` looks back on."""


@register("entropy-threshold")
class EntropyThreshold(PredictableSchedule):
    """Branch where H_t reaches a running quantile of earlier batches' backbones.

    Until a batch has been observed the threshold is 0 nats: every decision qualifies, so the first M that are
    far enough apart are taken.
    """

    reads_entropy = True

    def __init__(self, options: ScheduleOptions) -> None:
        super().__init__(options)
        self.entropies: deque[float] = deque(maxlen=WINDOW)
        self.threshold = 0.0

    def wants(self, view: DecisionView) -> bool:
        if view.entropy is None:
            raise ValueError(
                "entropy-threshold got no entropy: use an engine that reports them, or the schedule equal, "
                "hazard or root"
            )
        return view.entropy >= self.threshold

    def observe(self, trees: Sequence[RolloutTree]) -> None:
        """Take in the decisions of all rollouts from the root; forks would over-count late decisions."""
        rollouts = [branch for tree in trees for branch in tree.branches if branch.fork == 0]
        decisions = [d for branch in rollouts for d in branch.decisions]
        if self.options.measure == "actions":  # taken on backbones only
            decisions = [d for d in decisions if d.action_entropy is not None]
        self.entropies.extend(decision_entropy(d, self.options.measure) for d in decisions)
        self._set_threshold()

    def _set_threshold(self) -> None:
        if self.entropies:
            self.threshold = float(np.quantile(self.entropies, self.options.quantile))

    def state_dict(self) -> dict[str, Any]:
        return {"entropies": list(self.entropies)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.entropies = deque(state["entropies"], maxlen=WINDOW)
        self._set_threshold()


@register("equal")
class Equal(PredictableSchedule):
    """Fixed decisions, given as `decisions` or spread evenly over `horizon`: i T/(M+1), or i T/M with `root`.

    They were set apart by hand, so `spacing` does not apply.
    """

    def __init__(self, options: ScheduleOptions) -> None:
        super().__init__(options)
        self.decisions = frozenset(options.decisions or equal_depths(options))
        if len(self.decisions) != options.branch_points or min(self.decisions, default=0) < 0:
            raise ValueError(
                f"schedule equal has M = {options.branch_points} branch points, but decisions "
                f"{sorted(self.decisions)}: expected {options.branch_points} different depths from 0 on"
            )
        if options.root and options.branch_points and 0 not in self.decisions:
            raise ValueError(f"root asks for depth 0, but decisions are {sorted(self.decisions)}: add 0")

    def branch_here(self, view: DecisionView) -> bool:
        return view.depth in self.decisions


def equal_depths(options: ScheduleOptions) -> list[int]:
    """M depths that cut `horizon` decisions into equal segments.

    Raises:
        ValueError: no horizon, or one too short for M different depths.
    """
    count, horizon = options.branch_points, options.horizon
    if horizon is None:
        raise ValueError(
            "schedule equal needs `decisions` (depths) or `horizon` (expected number of decisions)"
        )
    if horizon < count + (not options.root):
        raise ValueError(f"a horizon of {horizon} decisions has no {count} equally spaced inner ones")
    if options.root:
        return [i * horizon // count for i in range(count)]
    return [i * horizon // (count + 1) for i in range(1, count + 1)]


@register("root")
class Root(PredictableSchedule):
    """Branch at decision 0 only: K independent rollouts of the prompt, what RLOO and GRPO compare."""

    def __init__(self, options: ScheduleOptions) -> None:
        super().__init__(options)
        if options.branch_points > 1:
            raise ValueError(
                f"schedule root has one branch point, but M = {options.branch_points}: set M = 1 and K = N"
            )

    def wants(self, view: DecisionView) -> bool:
        return view.depth == 0


@register("hazard")
class Hazard(PredictableSchedule):
    """Branch at each decision with probability `rate`, independently of everything."""

    def wants(self, view: DecisionView) -> bool:
        return bool(np.random.default_rng((SALT, *view.key)).random() < self.options.rate)
