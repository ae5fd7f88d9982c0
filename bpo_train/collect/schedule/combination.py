"""Which credits and schedules go together."""

from __future__ import annotations

from bpo_train.collect.entropy import SAMPLED_ACTION_MEASURES
from bpo_train.collect.schedule.base import Schedule
from bpo_train.credit import Credit


def check_combination(credit: Credit, schedule: Schedule) -> None:
    """Raise ValueError, saying what to change, where a credit and a schedule don't go together.

    What is known to be biased but not meaningless passes with the credit's `allow_biased`.
    """
    options = schedule.options
    if options.branch_points < 1 and credit.needs_siblings:
        raise ValueError(
            f"credit {credit.name} compares siblings, but M = {options.branch_points} branch points are "
            f"asked for: set M >= 1, or use the credit reinforce"
        )
    if credit.root_only and options.branch_points and schedule.name != "root":
        raise ValueError(
            f"credit {credit.name} compares rollouts that share only the prompt, but the schedule is "
            f"{schedule.name}: use the schedule root with M = 1 and K = N"
        )
    if schedule.predictable and schedule.reads_entropy and options.measure in SAMPLED_ACTION_MEASURES:
        raise ValueError(
            f"entropy measure {options.measure!r} looks at the sampled action, but schedule {schedule.name} "
            f"decides before it is drawn: use the measure 'first'"
        )
    if schedule.predictable and options.exclude_last:
        raise ValueError(
            f"schedule {schedule.name} decides before it knows which decision is the last: exclude_last is "
            f"for post-hoc schedules"
        )
    if schedule.predictable and options.fresh_siblings:
        raise ValueError(
            f"schedule {schedule.name} is predictable, so the backbone is as good a sibling as a fresh one: "
            f"fresh_siblings is for post-hoc schedules"
        )
    for option, default in (("prefix", "backbone"), ("suffix", "inherit")):
        given = getattr(credit.options, option)
        if credit.name != "bpo" and given != default:
            raise ValueError(
                f"{option} {given!r} is a choice within credit bpo; {credit.name} has no such choice"
            )
    if credit.needs_predictable and not schedule.predictable and not credit.options.allow_biased:
        raise ValueError(
            f"credit {credit.name} is biased with the post-hoc schedule {schedule.name}, which knows how the "
            f"backbone went on: use a predictable schedule (entropy-threshold, equal, hazard, root), or set "
            f"allow_biased"
        )
