"""Methods by name: a credit and the schedule it is meant for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from .collect.budget import siblings_for
from .collect.schedule import Schedule, ScheduleOptions, check_combination, make_schedule
from .credit import Credit, CreditOptions, make_credit


@dataclass(frozen=True)
class Method:
    """A credit with its default schedule.

    Attributes:
        credit: name in the credit registry.
        schedule: name in the schedule registry.
        root: whether depth 0 is always one of the M branch points of its own schedule.
    """

    credit: str
    schedule: str
    root: bool = False


METHODS = {
    "bpo": Method("bpo", "entropy"),
    "bpo-corrected": Method("bpo-corrected", "entropy-threshold", root=True),
    "rloo": Method("rloo", "root"),
    "grpo": Method("grpo", "root"),
    "reinforce": Method("reinforce", "root"),
}


def build(
    name: str, schedule_name: str, returns: int, schedule: ScheduleOptions, credit: CreditOptions
) -> tuple[Credit, Schedule]:
    """The credit and the schedule of a method.

    Args:
        name: of the method.
        schedule_name: another schedule than the method's own; "" for its own.
        returns: N, rollouts a prompt; 0: as many as M and K make, and 8 for methods that only branch at the
            root.
        schedule: its options. With N given, K follows from it and M; methods that only branch at the root get
            M = 1 and K = N.
        credit: its options.

    Raises:
        ValueError: an unknown name, or options that cannot go together.
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; expected one of {', '.join(METHODS)}")
    method = METHODS[name]
    chosen = schedule_name or method.schedule
    if chosen == "root":
        schedule = dataclasses.replace(schedule, branch_points=1, siblings=returns or 8)
    elif returns:
        siblings = siblings_for(returns, schedule.branch_points, schedule.fresh_siblings)
        schedule = dataclasses.replace(schedule, siblings=siblings)
    root = schedule.root or (method.root and chosen == method.schedule)
    schedule = dataclasses.replace(schedule, root=root)
    made = make_credit(method.credit, credit), make_schedule(chosen, schedule)
    check_combination(*made)
    return made
