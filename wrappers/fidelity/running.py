"""Threads, child processes and timers of this process."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

_TIMERS = {
    "ITIMER_REAL": "signal.alarm or setitimer",
    "ITIMER_VIRTUAL": "setitimer",
    "ITIMER_PROF": "setitimer",
}
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")  # they only wait
_GRACE = 0.02  # seconds in which a thread without a Thread object may finish


def running() -> set[Any]:
    """Keys of all threads, child processes and timers of this process."""
    return set(_all())


def running_on(before: set[Any]) -> dict[Any, str]:
    """What runs now and did not before, described."""
    new = {key: text for key, text in _all().items() if key not in before}
    if any(key[0] == "bare thread" for key in new):
        time.sleep(_GRACE)
        still = _all()
        new = {key: text for key, text in new.items() if key[0] != "bare thread" or key in still}
    return new


def _all() -> dict[Any, str]:
    found: dict[Any, str] = {}
    known = threading.enumerate()
    for thread in known:
        found["thread", thread.ident] = f"thread {thread.name!r}"
    for number in range(_thread._count() + 1 - len(known)):
        found["bare thread", number] = "a thread that `threading` does not know"
    found.update(running_processes())
    for name, how in _TIMERS.items():
        if hasattr(signal, name) and signal.getitimer(getattr(signal, name))[0] > 0:
            found["timer", name] = f"timer {name} ({how})"
    return found


def running_processes() -> dict[Any, str]:
    """Living descendants of this process, by /proc (Linux); elsewhere none are seen."""
    found, todo = {}, [os.getpid()]
    while todo:
        parent = todo.pop()
        for child in children_of(parent):
            todo.append(child)
            state, command = _process(child)
            if state not in ("Z", "X", "") and not any(helper in command for helper in _HELPERS):
                found["process", child] = f"child process {command[:80] or child!r}"
    return found


def children_of(process: int) -> list[int]:
    """Its children, by /proc; none where it has ended, or there is no such thing."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 (looked at after every step)
            with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as children:  # noqa: PTH123
                found += [int(word) for word in children.read().split()]
    except OSError:
        pass
    return found


def _process(pid: int) -> tuple[str, str]:
    """State letter and command line of a process; empty where it has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (OSError, IndexError):
        return "", ""
