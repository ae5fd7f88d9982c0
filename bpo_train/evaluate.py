"""Evaluation on held-out tasks: success and score, sampled and greedy, and paired differences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wrappers import SnapshotEnv

from .collect.collector import Collector, GrowthOptions
from .collect.environment import Task
from .collect.pool import Pool
from .engine import Engine, Sampling
from .policy import PromptFormat

EVALUATION = 0x0E7A1
"""First number of all random keys of evaluations: they never share a stream with training."""


@dataclass(frozen=True)
class Outcomes:
    """One episode a task, in the order of the tasks."""

    won: tuple[bool, ...]
    score: tuple[float, ...]
    decisions: tuple[int, ...]

    @property
    def success(self) -> float:
        """Share of tasks won."""
        return sum(self.won) / len(self.won)

    @property
    def mean_score(self) -> float:
        return sum(self.score) / len(self.score)


@dataclass(frozen=True)
class Evaluation:
    """Sampled and greedy outcomes on the same tasks."""

    sampled: Outcomes
    greedy: Outcomes

    def to_plain(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, data: dict[str, dict[str, list[Any]]]) -> Evaluation:
        """The inverse of `to_plain`."""
        return cls(
            *(Outcomes(**{k: tuple(v) for k, v in data[mode].items()}) for mode in ("sampled", "greedy"))
        )

    def summary(self) -> dict[str, Any]:
        """As it stands in summary.json; `success` and `score` are of sampled episodes."""
        return {
            "success": self.sampled.success,
            "greedy_success": self.greedy.success,
            "score": self.sampled.mean_score,
            "n": len(self.sampled.won),
        }


Actor = Callable[[SnapshotEnv, str, Mapping[str, Any]], str]
"""A policy that is no language model: environment, observation and info in, action out."""


def play_actor(env: SnapshotEnv, actor: Actor, tasks: Sequence[Task]) -> Outcomes:
    """One episode of each task, played by a script or a person."""
    won, score, decisions = [], [], []
    for task in tasks:
        text, info = env.reset(**task.reset_arguments(seed=task.index))
        steps, done = 0, False
        while not done:
            text, _, terminated, truncated, info = env.step(actor(env, text, info))
            steps, done = steps + 1, terminated or truncated
        won.append(bool(info.get("won", False)))
        score.append(float(info.get("score", 0.0)))
        decisions.append(steps)
    return Outcomes(tuple(won), tuple(score), tuple(decisions))


def play(
    engine: Engine,
    pool: Pool,
    format: PromptFormat,
    sampling: Sampling,
    options: GrowthOptions,
    tasks: Sequence[Task],
    seed: int,
) -> Outcomes:
    """One episode of each task. The same seed draws the same random numbers, whatever the weights."""
    collector = Collector(engine, pool, format, sampling, None, options)
    trees = collector.collect(tasks, (EVALUATION, seed))
    ends = [tree.backbone for tree in trees]
    return Outcomes(
        tuple(end.won for end in ends),
        tuple(end.score for end in ends),
        tuple(len(end.decisions) for end in ends),
    )


def evaluate(
    engine: Engine,
    pool: Pool,
    format: PromptFormat,
    sampling: Sampling,
    options: GrowthOptions,
    tasks: Sequence[Task],
    seed: int,
) -> Evaluation:
    """Sampled and greedy episodes of every task."""
    modes = (dataclasses.replace(sampling, greedy=greedy) for greedy in (False, True))
    return Evaluation(*(play(engine, pool, format, mode, options, tasks, seed) for mode in modes))


def mean_interval(values: Sequence[float]) -> dict[str, float]:
    """Mean with its 95 % interval, the normal one: mean +- 1.96 s / sqrt(n), for samples of dozens and more.

    Raises:
        ValueError: fewer than two values.
    """
    if len(values) < 2:
        raise ValueError(f"an interval needs at least 2 values, given {len(values)}")
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = 1.96 * math.sqrt(variance / len(values))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def paired_difference(before: Sequence[float], after: Sequence[float]) -> dict[str, float]:
    """Mean of after - before over pairs of outcomes of the same task, with its 95 % interval.

    Raises:
        ValueError: unequal lengths, or fewer than two pairs.
    """
    if len(before) != len(after):
        raise ValueError(f"pairs need equal numbers of outcomes, given {len(before)} and {len(after)}")
    return mean_interval([float(b) - float(a) for a, b in zip(before, after)])
