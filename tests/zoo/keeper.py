"""Runs checks on one animal in a forked process, without the start of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wrappers.fidelity import Settings
from wrappers.fidelity.worker import contained_checks
from wrappers.target import target_of

BRIEFLY: dict[str, Any] = {"episodes": 4, "budget": 0.1, "time_limit": 20.0, "hash_seeds": (1, 2)}


def examine(make: Any, names: Sequence[str], **settings: Any) -> dict[str, dict[str, Any]]:
    """Results by check: {"passed", "skipped", "detail", "reproduce", ...}."""
    return contained_checks(target_of(make, {}, (), "auto"), Settings(**{**BRIEFLY, **settings}), names)
