"""cost: what a snapshot and a restore cost, beside a step and a rollout, and what they save.

With M branch points on a backbone and K continuations of each, one tree takes M snapshots and M (K - 1)
restores. Without snapshots each of the M (K - 1) siblings would reset and replay the steps before its branch
point, half an episode on average. The break-even c_snap is the time at which replay is as cheap.
"""

from __future__ import annotations

import copy
import statistics
from typing import Any

from ...snapshot import Snapshot
from ..context import Context, Finding
from ..oracle import now


def check(context: Context) -> Finding:
    measured = measure(context)
    cost = tree_cost(measured, context.settings.branch_points, context.settings.siblings)
    return Finding(describe(cost), data=cost)


def measure(context: Context) -> dict[str, float]:
    """Medians in seconds of reset, step, snapshot and restore; bytes; steps of an episode."""
    times: dict[str, list[float]] = {name: [] for name in ("reset", "step", "snapshot", "restore")}
    sizes: list[float] = []
    env = context.target.make()
    try:
        for episode in context.episodes:
            seed, options = episode.events[0].value
            _timed(times["reset"], lambda: env.reset(seed=seed, options=copy.deepcopy(options)))  # noqa: B023
            for event in episode.events[1:]:
                outcome = _timed(times["step"], lambda: env.step(copy.deepcopy(event.value)))  # noqa: B023
                snapshot = _timed(times["snapshot"], env.snapshot)
                _timed(times["restore"], lambda: env.restore(snapshot))  # noqa: B023
                if context.unwritten is None and len(sizes) < 200:
                    sizes.append(float(Snapshot(snapshot.origin, snapshot.payload()).size))
                snapshot.close()
                if outcome[2] or outcome[3] or context.time_is_up:
                    break
            if context.time_is_up:
                break
    finally:
        env.close()
    medians = {name: statistics.median(found) for name, found in times.items() if found}
    steps = statistics.mean(max(1, episode.length) for episode in context.episodes)
    return {
        "reset_seconds": medians["reset"],
        "step_seconds": medians.get("step", 0.0),
        "c_snap_seconds": medians.get("snapshot", 0.0),
        "c_restore_seconds": medians.get("restore", 0.0),
        "bytes": statistics.median(sizes) if sizes else 0.0,
        "steps_per_episode": steps,
    }


def _timed(times: list[float], call: Any) -> Any:
    begin = now()
    result = call()
    times.append(now() - begin)
    return result


def tree_cost(
    measured: dict[str, float], branch_points: int, siblings: int, decision_seconds: float = 0.0
) -> dict[str, Any]:
    """The cost of one tree with `branch_points` M and `siblings` K.

    decision_seconds: time in which a policy decides one step (0: the environment's own time alone, which
        makes the share of snapshots the largest it can be).
    """
    step = measured["step_seconds"] + decision_seconds
    length, forks = measured["steps_per_episode"], branch_points * (siblings - 1)
    going_back = branch_points * measured["c_snap_seconds"] + forks * measured["c_restore_seconds"]
    rollouts = measured["reset_seconds"] + length * step + forks * (length / 2) * step
    replay = measured["reset_seconds"] + (length / 2) * measured["step_seconds"]
    return {
        **measured,
        "M": branch_points,
        "K": siblings,
        "decision_seconds": decision_seconds,
        "rollout_seconds": rollouts,
        "share_of_rollout": going_back / (going_back + rollouts) if going_back + rollouts else 0.0,
        "break_even_c_snap_seconds": max(0.0, (siblings - 1) * (replay - measured["c_restore_seconds"])),
    }


def describe(cost: dict[str, Any]) -> str:
    return (
        f"c_snap {duration(cost['c_snap_seconds'])}, c_restore {duration(cost['c_restore_seconds'])}, "
        f"{cost['bytes']:.0f} bytes; a step {duration(cost['step_seconds'])}, a reset "
        f"{duration(cost['reset_seconds'])}; {100 * cost['share_of_rollout']:.1f} % of the environment's "
        f"time at M={cost['M']}, K={cost['K']}; cheaper than replay below c_snap "
        f"{duration(cost['break_even_c_snap_seconds'])}"
    )


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
