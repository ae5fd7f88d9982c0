"""Schedules: where a backbone branches (see `base` for the seam)."""

from bpo_train.collect.schedule import posthoc, predictable  # importing a schedule registers it
from bpo_train.collect.schedule.base import (
    SCHEDULES,
    DecisionView,
    PostHocSchedule,
    PredictableSchedule,
    Schedule,
    ScheduleOptions,
    action_starts,
    make_schedule,
    register,
)
from bpo_train.collect.schedule.combination import check_combination

__all__ = [
    "SCHEDULES",
    "DecisionView",
    "PostHocSchedule",
    "PredictableSchedule",
    "Schedule",
    "ScheduleOptions",
    "action_starts",
    "check_combination",
    "make_schedule",
    "posthoc",
    "predictable",
    "register",
]
