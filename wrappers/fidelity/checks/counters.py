"""counters: truncation comes at the same step after a restore, and the statistics of the episode agree.

The environment is looked at inside RecordEpisodeStatistics, as it is and under a TimeLimit short enough to be
reached; only the ends of episodes and info["episode"] are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import gymnasium as gym
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from ...snapshot_env import SnapshotEnv
from ..context import Context, Finding
from ..oracle import Oracle, reset
from ..program import Failure, Op, Program, Run, events
from .restoring import occasions

ONLY = ("terminated", "truncated", "info.episode", "info.episode_so_far")
_CLOCK = "info.episode_so_far.t"


def check(context: Context) -> Finding:
    comparison = replace(context.comparison, only=ONLY, ignore=(*context.comparison.ignore, _CLOCK))
    longest = max(episode.length for episode in context.episodes)
    limits = [None, max(3, min(12, longest - 1))]
    details = []
    for limit in limits:
        oracle = Oracle(_counting(context, limit), comparison)

        def run(program: Program, oracle: Oracle = oracle) -> Failure | None:
            return Run(oracle, program, comparison).failure()

        context.until += context.settings.budget / 2 if limit else 0
        finding = context.search(_programs(context, limit), "return", run)
        if not finding.passed:
            if limit:
                finding.detail = f"under TimeLimit({limit}): {finding.detail}"
            return finding
        details.append(f"{finding.detail} {f'under TimeLimit({limit})' if limit else 'as it is'}")
    return Finding("; ".join(details))


def _counting(context: Context, limit: int | None) -> Callable[[], SnapshotEnv]:
    def make() -> SnapshotEnv:
        env: gym.Env = context.target.make()
        if limit is not None:
            env = TimeLimit(env, limit)
        return SnapshotEnv(RecordEpisodeStatistics(env, stats_key="episode_so_far"))

    return make


def _programs(context: Context, limit: int | None) -> Iterator[Program]:
    """Go on from a moment, here and in another instance, after the count has gone past the end elsewhere."""
    for number, (episode, at) in enumerate(occasions(context)):
        played = episode.events
        if limit is not None:
            at = min(at, 1 + number % limit)
        if at > len(played):
            continue
        other = context.episodes[(number + 1) % len(context.episodes)].events
        wander = [*played[at:], reset(episode.seed + 1, played[0].value[1]), *other[1 : 1 + number % 5]]
        yield [
            Op("make"),
            *events(played[:at]),
            Op("snapshot", value="s"),
            *events(wander, checked=False),
            Op("restore", value="s"),
            *events(played[at:]),
            *(Op("make", "b"), Op("restore", "b", "s"), *events(played[at:], "b")),
        ]
