"""Files that code of this process writes: found by an audit hook, and by looking into its own folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

LARGEST = 1 << 20  # bytes of a file whose content is remembered
_MOST = 2000

_written: set[str] = set()
_hooked = False
_private: Path | None = None


def watch_files(private: Path | None) -> None:
    """From now on remembers the paths that Python code of this process writes, moves or removes.

    private: a temporary folder of this process alone, all of which is watched.
    """
    global _hooked, _private
    _private = private
    if not _hooked:
        sys.addaudithook(_hook)  # there is no way to remove one
        _hooked = True


def _hook(event: str, args: tuple) -> None:
    if event == "open" and len(args) >= 3:
        path, mode, flags = args[:3]
        by_mode = isinstance(mode, str) and bool(set(mode) & set("wax+"))
        writes = by_mode or (isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)))
        if writes and isinstance(path, (str, bytes)):
            _note(path)
    elif event in ("os.rename", "os.remove", "os.truncate", "os.mkdir", "sqlite3.connect"):
        for path in args[:2]:
            if isinstance(path, (str, bytes, os.PathLike)):
                _note(path)


def _note(path: Any) -> None:
    path = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (no links resolved: the hook must stay cheap)
    private = _private is not None and path.startswith(str(_private))  # looked into anyway
    device = path.startswith(("/proc/", "/dev/")) and not path.startswith("/dev/shm/")
    if not private and not device and len(_written) < _MOST:
        _written.add(path)


def written() -> list[Path]:
    """Paths outside the private folder that were written so far, and all files and folders inside it."""
    inside = [
        Path(folder, name)
        for folder, folders, names in os.walk(_private or "")
        for name in [*folders, *names]
    ]
    return [*map(Path, sorted(_written)), *inside[:_MOST]]


def content(path: Path) -> bytes | None:
    """The content of a file, b"" of a large one, None where there is none."""
    try:
        return path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError:
        return None


def write(path: Path, given: bytes | None) -> None:
    """Makes a file what `content` returned."""
    if content(path) == given:
        return
    if given is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(given)
