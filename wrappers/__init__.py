"""Environments you can go back in: `SnapshotEnv` gives any Gymnasium environment snapshot() and restore().

See docs/snapshots.md. This package knows Gymnasium and numpy, and no environment of ours.
"""

from __future__ import annotations

from .errors import CodecError, SnapshotError
from .snapshot import Snapshot
from .snapshot_env import SnapshotEnv

__all__ = ["CodecError", "Snapshot", "SnapshotEnv", "SnapshotError"]
