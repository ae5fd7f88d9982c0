"""Where to branch: the schedule seam.

A *predictable* schedule decides at each backbone decision from s_0..s_t, before a_t is drawn; it snapshots
only where it branches and keeps the siblings exchangeable with the backbone. A *post-hoc* one looks at the
finished backbone and picks decisions from it, as the paper does; what it knows of the backbone's future
biases the credit. Each is one small class under `@register(name)`, and only earlier batches may inform it
(`observe`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpo_train.collect.budget import check_shape
from bpo_train.collect.entropy import MEASURES
from bpo_train.tree import Branch, RolloutTree

SALT = 0x5C4ED
"""Sets a schedule's random draws apart from others that start from the same key."""


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """What schedules can be told; each uses what concerns it.

    Attributes:
        branch_points: M, at most so many on a backbone; 0 for backbones only.
        siblings: K at each.
        spacing: Delta_min, tokens between the starts of two branch points' actions, at least.
        spacing_unit: "generated" tokens, or "context": all tokens.
        measure: entropy of an action (see `collect.entropy`).
        exclude_last: never branch at the last decision, the paper's index set {0..T_0-1}; post-hoc only and
            biased.
        root: depth 0 is always one of the M points.
        quantile: of earlier batches' entropies, at or above which `entropy-threshold` branches.
        decisions: depths at which `equal` branches; empty: M points equally spaced over `horizon`.
        horizon: expected number of decisions, for `equal`.
        rate: probability that `hazard` branches at a decision.
        fresh_siblings: K fresh siblings, the backbone left out of the group.
    """

    branch_points: int = 2
    siblings: int = 4
    spacing: int = 64
    spacing_unit: str = "generated"
    measure: str = "first"
    exclude_last: bool = False
    root: bool = False
    quantile: float = 0.5
    decisions: tuple[int, ...] = ()
    horizon: int | None = None
    rate: float = 0.2
    fresh_siblings: bool = False

    def __post_init__(self) -> None:
        check_shape(self.branch_points, self.siblings)
        if self.spacing < 0:
            raise ValueError(f"spacing is {self.spacing} tokens: expected 0 or more")
        if self.spacing_unit not in ("generated", "context"):
            raise ValueError(f"spacing_unit is {self.spacing_unit!r}: expected 'generated' or 'context'")
        if self.measure not in MEASURES:
            raise ValueError(f"measure is {self.measure!r}: expected one of {', '.join(MEASURES)}")
        if not 0 <= self.quantile <= 1:
            raise ValueError(f"quantile is {self.quantile}: expected a value from 0 to 1")
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate is {self.rate}: expected a probability above 0")


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What a predictable schedule may know at decision t, before a_t is drawn.

    Attributes:
        depth: t.
        entropy: H_t in nats of the first token (or over a scored list of actions); None if the engine can't
            tell.
        spacing: tokens since the last branch point's action began, in the options' unit; None before the
            first.
        taken: branch points so far on this backbone.
        key: counter that sets this decision's random draw.
    """

    depth: int
    entropy: float | None
    spacing: int | None
    taken: int
    key: tuple[int, ...]


class Schedule:
    """Base of all schedules.

    Attributes:
        predictable: which of the two kinds below it is.
        reads_entropy: whether the option `measure` matters to it.
    """

    name: str
    predictable: bool
    reads_entropy = False

    def __init__(self, options: ScheduleOptions) -> None:
        self.options = options

    def observe(self, trees: Sequence[RolloutTree]) -> None:
        """Learn from a finished batch; only later batches are affected."""

    def state_dict(self) -> dict[str, Any]:
        """What later batches depend on, as plain JSON data; part of the checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            raise ValueError(f"schedule {self.name} keeps no state, but was given {sorted(state)}")


class PredictableSchedule(Schedule):
    """Decides while the backbone grows."""

    predictable = True

    def branch_here(self, view: DecisionView) -> bool:
        """Whether decision t is a branch point: M and the spacing respected, `root` honoured."""
        options = self.options
        if view.taken >= options.branch_points:
            return False
        if options.root and view.depth == 0:
            return True
        far_enough = view.spacing is None or view.spacing >= options.spacing
        return far_enough and self.wants(view)

    def wants(self, view: DecisionView) -> bool:
        """The schedule's own rule."""
        raise NotImplementedError


class PostHocSchedule(Schedule):
    """Picks from the finished backbone."""

    predictable = False

    def choose(self, backbone: Branch, key: tuple[int, ...]) -> list[int]:
        """Depths of the branch points, ascending: at most M, `spacing` tokens apart, best first."""
        options = self.options
        positions = action_starts(backbone, options.spacing_unit)
        count = len(positions) - 1 if options.exclude_last else len(positions)
        order = self.rank(backbone, count, np.random.default_rng((SALT, *key)))
        if options.root and count:
            order = [0, *order]
        return take_spaced(order, positions, options.branch_points, options.spacing)

    def rank(self, backbone: Branch, count: int, rng: np.random.Generator) -> list[int]:
        """The first `count` decisions of the backbone, the most wanted first."""
        raise NotImplementedError


def action_starts(backbone: Branch, unit: str) -> list[int]:
    """Position in tokens at which each action of the backbone begins, counted in `unit`."""
    positions, position = [], 0
    for decision in backbone.decisions:
        if unit == "context":
            position += len(decision.context)
        positions.append(position)
        position += len(decision.action)
    return positions


def take_spaced(order: Iterable[int], positions: Sequence[int], most: int, spacing: int) -> list[int]:
    """Take decisions in `order` unless closer than `spacing` tokens to one already taken; ascending."""
    taken: list[int] = []
    for depth in order:
        clear = all(abs(positions[depth] - positions[other]) >= spacing for other in taken)
        if len(taken) < most and depth not in taken and clear:
            taken.append(depth)
    return sorted(taken)


SCHEDULES: dict[str, Callable[[ScheduleOptions], Schedule]] = {}


def register(name: str) -> Callable[[type[Schedule]], type[Schedule]]:
    """Class decorator: make the schedule available as `name`."""

    def add(cls: type[Schedule]) -> type[Schedule]:
        cls.name = name
        SCHEDULES[name] = cls
        return cls

    return add


def make_schedule(name: str, options: ScheduleOptions | None = None) -> Schedule:
    """Build the schedule called `name`.

    Raises:
        ValueError: no schedule has that name, or the options don't suit it.
    """
    if name not in SCHEDULES:
        raise ValueError(f"no schedule is called {name!r}: choose one of {', '.join(sorted(SCHEDULES))}")
    return SCHEDULES[name](options or ScheduleOptions())
