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
    from .contract import SnapshotContract
    from .faults import FaultInjector
    from .fidelity import FidelityReport, check_fidelity
    from .vector import make_vec

__all__ = [
    "CodecError",
    "FaultInjector",
    "FidelityReport",
    "Snapshot",
    "SnapshotContract",
    "SnapshotEnv",
    "SnapshotError",
    "check_fidelity",
    "make_vec",
]

# Imported when they are asked for: whoever only runs environments need not pay for them.
_LATER = {
    "FaultInjector": "faults",
    "FidelityReport": "fidelity",
    "SnapshotContract": "contract",
    "check_fidelity": "fidelity",
    "make_vec": "vector",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
