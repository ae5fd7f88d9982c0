"""Disturb what lies outside an environment's state: global generators, the clock, the working directory.

Each disturbance is a function that disturbs and returns another that undoes it. An environment whose future
changes with one of them keeps part of its state there.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Undo = Callable[[], None]

SHIFTS = (400 * 86400 + 5 * 3600 + 47 * 60 + 13.7, 33 * 86400 + 11 * 3600 + 7 * 60 + 38.2)  # seconds
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_DATES = ("localtime", "gmtime", "ctime", "asctime", "strftime")


def global_random() -> Undo:
    before = random.getstate()
    random.seed(987654321)
    return lambda: random.setstate(before)


def global_numpy() -> Undo:
    before = np.random.get_state()
    np.random.seed(987654321)
    return lambda: np.random.set_state(before)


def global_torch() -> Undo:
    """Only where the environment imported torch already."""
    torch = sys.modules.get("torch")
    if torch is None:
        return lambda: None
    before = torch.get_rng_state()
    torch.manual_seed(987654321)
    return lambda: torch.set_rng_state(before)


def working_directory() -> Undo:
    before = Path.cwd()
    folder = tempfile.TemporaryDirectory(prefix="elsewhere-")
    os.chdir(folder.name)

    def undo() -> None:
        os.chdir(before)
        folder.cleanup()

    return undo


def clock(shift: float) -> Undo:
    """Moves every clock of Python's `time` and `datetime` by `shift` seconds, wherever it was imported."""
    swaps: dict[int, tuple[Any, Any]] = {}
    for name in _CLOCKS:
        for suffix, unit in (("", 1), ("_ns", 10**9)):
            real = getattr(time, name + suffix, None)
            if real is not None:
                swaps[id(real)] = (real, _shifted(real, type(unit)(1) * shift * unit, bool(suffix)))
    for name in _DATES:
        real = getattr(time, name)
        swaps[id(real)] = (real, _dated(real, name))
    # `date.today` asks time.time; datetime asks the system itself.
    swaps[id(datetime.datetime)] = (datetime.datetime, _shifted_datetime(shift))
    return _swap_everywhere(swaps)


def _shifted(real: Callable[[], Any], shift: float, whole: bool) -> Callable[[], Any]:
    amount = int(shift) if whole else shift
    return lambda: real() + amount


def _dated(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    """localtime() and its like, which read the clock when they are given no time."""

    def shifted(*args: Any) -> Any:
        if name in ("strftime", "asctime"):
            given = args[1:] if name == "strftime" else args
            return real(*args[:1], *given) if given else real(*args, time.localtime())
        return real(*args) if args and args[0] is not None else real(time.time())

    return shifted


def _shifted_datetime(shift: float) -> Any:
    """A subclass of datetime that counts as the class itself, with its `now`, `utcnow` and `today` moved."""
    real: Any = datetime.datetime
    move = datetime.timedelta(seconds=shift)

    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    def moved(name: str) -> Any:
        return classmethod(lambda cls, *args, **kwargs: getattr(real, name)(*args, **kwargs) + move)

    return Meta(real.__name__, (real,), {name: moved(name) for name in ("now", "utcnow", "today")})


_Place = tuple[dict[str, Any], str, Any]  # a namespace, a name in it, and the object there
_found: tuple[int, list[_Place]] = (0, [])


def _swap_everywhere(swaps: dict[int, tuple[Any, Any]]) -> Undo:
    """Replaces objects in the namespaces of all modules but this package's own."""
    global _found
    if _found[0] != len(sys.modules):
        _found = len(sys.modules), list(_holders(swaps))
    places = _found[1]
    for namespace, name, real in places:
        namespace[name] = swaps[id(real)][1]

    def undo() -> None:
        for namespace, name, real in places:
            namespace[name] = real

    return undo


def _holders(swaps: dict[int, tuple[Any, Any]]) -> Iterator[_Place]:
    for module_name, module in list(sys.modules.items()):
        namespace = getattr(module, "__dict__", None)
        if isinstance(namespace, dict) and not module_name.startswith((__package__ or "", "_")):
            for name, value in list(namespace.items()):
                if swaps.get(id(value), (None, None))[0] is value and value is not None:
                    yield namespace, name, value


DISTURBANCES: dict[str, Callable[[], Undo]] = {
    "the global generator of `random`": global_random,
    "the global generator of numpy": global_numpy,
    "the global generator of torch": global_torch,
    "the clock": lambda: clock(SHIFTS[0]),
    "the clock (another day and hour)": lambda: clock(SHIFTS[1]),
    "the working directory": working_directory,
}
