"""background work: no thread, child process or timer of the environment outlives a step.

What runs on between steps is not in a snapshot, and may change the environment behind its back.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ..context import Context, Finding
from ..oracle import Event
from ..program import Op, events

_TIMERS = {
    "ITIMER_REAL": "signal.alarm or setitimer",
    "ITIMER_VIRTUAL": "setitimer",
    "ITIMER_PROF": "setitimer",
}
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "wrappers.fidelity")
_GRACE = 0.02  # seconds in which a thread without a Thread object may finish


def check(context: Context) -> Finding:
    before = running()
    looks = 0
    for episode in context.episodes:
        found = _episode(context, episode.events, before)
        if isinstance(found, Finding):
            return found
        looks += found
        if context.time_is_up:
            break
    return Finding(
        f"looked {looks} times, after making, resets, steps, snapshots and restores: nothing ran on"
    )


def _episode(context: Context, played: list[Event], before: set[Any]) -> Finding | int:
    program: list[Op] = []
    looks = 0

    def new(op: Op) -> Finding | None:
        nonlocal looks
        program.append(op)
        looks += 1
        ran_on = running_on(before)
        if not ran_on:
            return None
        what = "making the environment" if op.kind == "make" else str(op)
        steps = [o.value.value for o in program if o.kind == "event" and o.value.kind == "step"]
        detail = f"after {what} (step {len(steps)}): {', '.join(sorted(set(ran_on.values())))}"
        code = "\n".join(map(str, program)) + f"  # {detail}"
        seed = played[0].value[0]
        from ..program import printable

        actions = [printable(action) for action in steps]
        return Finding(detail, False, reproduce={"seed": seed, "actions": actions, "code": code})

    env = context.target.make()
    try:
        found = new(Op("make"))
        for event in played:
            if found:
                break
            if event.kind == "reset":
                seed, options = copy.deepcopy(event.value)
                env.reset(seed=seed, options=options)
            else:
                env.step(copy.deepcopy(event.value))
            found = new(events([event])[0])
            if not found and context.refusal is None and looks < 20:
                snapshot = env.snapshot()
                found = new(Op("snapshot", value="s"))
                env.restore(snapshot)
                found = found or new(Op("restore", value="s"))
                snapshot.close()
            if context.time_is_up:
                break
    finally:
        env.close()
    return found or looks


def running() -> set[Any]:
    """Keys of all threads, child processes and timers of this process."""
    return set(_running())


def running_on(before: set[Any]) -> dict[Any, str]:
    """What runs now and did not before, described."""
    new = {key: text for key, text in _running().items() if key not in before}
    if any(key[0] == "bare thread" for key in new):
        time.sleep(_GRACE)
        still = _running()
        new = {key: text for key, text in new.items() if key[0] != "bare thread" or key in still}
    return new


def _running() -> dict[Any, str]:
    found: dict[Any, str] = {}
    known = {thread.ident: thread for thread in threading.enumerate()}
    for ident in {*known, *sys._current_frames()}:
        if ident in known:
            found["thread", ident] = f"thread {known[ident].name!r}"
        else:
            found["bare thread", ident] = "a thread that `threading` does not know"
    found.update(_children())
    for name, how in _TIMERS.items():
        if hasattr(signal, name) and signal.getitimer(getattr(signal, name))[0] > 0:
            found["timer", name] = f"timer {name} ({how})"
    return found


def _children() -> dict[Any, str]:
    """Living descendants of this process, by /proc (Linux); elsewhere none are seen."""
    found, todo = {}, [os.getpid()]
    while todo:
        parent = todo.pop()
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                children = [int(word) for word in task.read_text().split()]
            except OSError:  # it ended meanwhile
                continue
            for child in children:
                todo.append(child)
                state, command = _process(child)
                if state not in ("Z", "X", "") and not any(helper in command for helper in _HELPERS):
                    found["process", child] = f"child process {command[:80] or child!r}"
    return found


def _process(pid: int) -> tuple[str, str]:
    """State letter and command line of a process; empty where it has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (OSError, IndexError):
        return "", ""
