"""Environments you can go back in: `SnapshotEnv` gives any Gymnasium environment snapshot() and restore().

See docs/snapshots.md. This package knows Gymnasium and numpy, and no environment of ours.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import CodecError, SnapshotError
from .snapshot import Snapshot
from .snapshot_env import SnapshotEnv

if TYPE_CHECKING:
    from .fidelity import FidelityReport, check_fidelity

__all__ = ["CodecError", "FidelityReport", "Snapshot", "SnapshotEnv", "SnapshotError", "check_fidelity"]

# Imported when they are asked for: whoever only runs environments need not pay for them.
_LATER = {"check_fidelity": "fidelity", "FidelityReport": "fidelity"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
