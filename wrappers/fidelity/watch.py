"""Watch what an environment keeps outside itself, and put it back: to prove that it has an influence.

A `Mark` remembers environment variables, module and class variables (places.py), files that were written
(files.py), open files, and settings of the interpreter. `changed` names what is different now, `rewind` puts
one kind back as it was. Where a continuation that had gone wrong comes right with one kind put back, this
kind holds state which the snapshot lacks.
"""

from __future__ import annotations

import decimal
import io
import os
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from .compare import Comparison, capture
from .files import content, write, written
from .places import UNKEPT, image, keep, layers, places, put, value_at, watchable

KINDS = (
    "environment variables",
    "module and class variables",
    "files",
    "open files",
    "settings of the interpreter",
)

# name -> how to read and to write it
_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "numpy.printoptions": (np.get_printoptions, lambda options: np.set_printoptions(**options)),
    "numpy.errstate": (np.geterr, lambda kinds: np.seterr(**kinds)),
    "decimal.getcontext().prec": (
        lambda: decimal.getcontext().prec,
        lambda digits: setattr(decimal.getcontext(), "prec", digits),
    ),
    "sys.getrecursionlimit()": (sys.getrecursionlimit, sys.setrecursionlimit),
}


class Mark:
    """What was where, at one moment of an environment."""

    def __init__(self, env: gym.Env) -> None:
        self._variables = dict(os.environ)
        self._values: list[tuple[str, Any, str, Any, Any]] = []
        for described, owner, name in places(env):
            value = value_at(owner, name)
            if watchable(value):
                self._values.append((described, owner, name, value, keep(value)))
        self._files = {path: content(path) for path in written()}
        self._positions = [(name, handle, handle.tell()) for name, handle in _handles(env)]
        self._settings = {name: read() for name, (read, _) in _SETTINGS.items()}

    def changed(self) -> dict[str, list[str]]:
        """Names of what is different now, by kind."""
        files = {path for path in {*self._files, *written()} if content(path) != self._files.get(path)}
        names = {*self._variables, *os.environ}
        return {
            "environment variables": sorted(
                name for name in names if self._variables.get(name) != os.environ.get(name)
            ),
            "module and class variables": [
                described
                for described, owner, name, value, kept in self._values
                if (value_at(owner, name) is not value and _differ(kept, value_at(owner, name)))
                or _differ(kept, value)
            ],
            "files": sorted(map(str, files)),
            "open files": [
                name for name, handle, at in self._positions if not handle.closed and handle.tell() != at
            ],
            "settings of the interpreter": [
                name for name, (read, _) in _SETTINGS.items() if _differ(self._settings[name], read())
            ],
        }

    def rewind(self, kind: str) -> None:
        """Puts one kind of places back as it was."""
        if kind == "environment variables":
            for name in {*self._variables, *os.environ}:
                if name in self._variables:
                    os.environ[name] = self._variables[name]
                else:
                    os.environ.pop(name, None)
        elif kind == "module and class variables":
            self._rewind_values()
        elif kind == "files":
            for path in {*self._files, *written()}:
                if not path.is_dir():
                    write(path, self._files.get(path))
        elif kind == "open files":
            for _, handle, at in self._positions:
                if not handle.closed:
                    handle.seek(at)
        elif kind == "settings of the interpreter":
            for name, (_, put_back) in _SETTINGS.items():
                put_back(self._settings[name])

    def _rewind_values(self) -> None:
        for _, owner, name, value, kept in self._values:
            if value_at(owner, name) is not value:
                setattr(owner, name, value)
            if kept is not UNKEPT and _differ(kept, value) and not put(value, kept):
                setattr(owner, name, keep(kept))


def _differ(kept: Any, value: Any) -> bool:
    if kept is UNKEPT:
        return False
    return Comparison(ignore=()).difference(capture(image(kept)), capture(image(value))) is not None


def _handles(env: gym.Env) -> list[tuple[str, Any]]:
    """Open files among the attributes of the environment and its wrappers."""
    return [
        (f"{type(layer).__name__}.{name}", value)
        for layer in layers(env)
        for name, value in vars(layer).items()
        if isinstance(value, io.IOBase) and not value.closed and value.seekable()
    ]


def describe(changed: dict[str, list[str]], kind: str, most: int = 3) -> str:
    """A kind and what changed of it, as text."""
    names = changed[kind]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{kind} ({', '.join(names[:most])}{more})"
