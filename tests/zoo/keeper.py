"""Runs one check on one animal in a forked process of its own, without the start of a worker."""

from __future__ import annotations

from typing import Any

from wrappers.fidelity import Settings
from wrappers.fidelity.target import target_of
from wrappers.fidelity.worker import contained_check

BRIEFLY = {"episodes": 4, "budget": 0.1, "time_limit": 20.0, "hash_seeds": (1, 2)}


def examine(make: Any, name: str, **settings: Any) -> dict[str, Any]:
    """The result of the check `name`: {"passed", "skipped", "detail", "reproduce", ...}."""
    return contained_check(target_of(make, {}, (), "auto"), Settings(**{**BRIEFLY, **settings}), name)
