"""The checks, in the order in which they run. Each takes a `Context` and returns a `Finding`."""

from __future__ import annotations

from collections.abc import Callable

from ..context import Context, Finding
from . import (
    background,
    cost,
    counters,
    coverage,
    determinism,
    distribution,
    hidden,
    isolation,
    leaks,
    portability,
    restoring,
)

Check = Callable[[Context], Finding]

CHECKS: dict[str, Check] = {
    "coverage": coverage.check,
    "determinism": determinism.check,
    "round trip": restoring.round_trip,
    "dirty round trip": restoring.dirty_round_trip,
    "repeatability": restoring.repeatability,
    "isolation": isolation.check,
    "transparency": restoring.transparency,
    "counters": counters.check,
    "hidden state": hidden.check,
    "portability": portability.check,
    "background work": background.check,
    "distribution": distribution.check,
    "leaks": leaks.check,
    "cost": cost.check,
}

# These need snapshots; these need the same answers to the same actions.
CAPTURING = frozenset(CHECKS) - {"coverage", "determinism", "background work", "leaks"}
REPEATING = frozenset(
    {"determinism", "round trip", "dirty round trip", "isolation", "transparency", "counters", "hidden state"}
) | {"portability"}

# Of the time for one check; the others are skipped where the check of distributions is needed.
WEIGHTS = {"hidden state": 2.0, "distribution": 6.0}


def run_check(name: str, context: Context) -> Finding:
    """Runs one check where it applies to the environment. Raises what the environment raises."""
    if name in CAPTURING and context.refusal is not None:
        return Finding("nothing can be captured; see coverage", skipped=True)
    if name in REPEATING and context.nondeterministic:
        return Finding("the environment is declared nondeterministic; see distribution", skipped=True)
    context.start(WEIGHTS.get(name, 1.0))
    return CHECKS[name](context)
