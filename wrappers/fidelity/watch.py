"""Watch what an environment keeps outside itself, and put it back: to prove that it has an influence.

Kinds of places: environment variables; module globals and class attributes (with defaults and closures of
functions); files it wrote; open files it holds. A `Mark` remembers them all; `changed` names what is
different now; `rewind` puts one kind back as it was. Where a continuation that had gone wrong comes right
with one kind put back, that kind holds state which the snapshot lacks.
"""

from __future__ import annotations

import copy
import io
import os
import random
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from .compare import Comparison, capture

_LARGEST_FILE = 1 << 20
_MOST_FILES = 2000
_MOST_PARTS = 5000  # parts of one module global; larger ones (catalogues) are not watched
_LIBRARIES = ("gymnasium", "numpy", "wrappers", "torch", "scipy", "cloudpickle")
_FOREIGN = {*_LIBRARIES, *sys.stdlib_module_names}
_DATA_MODULES = {
    "builtins",
    "collections",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "itertools",
    "pathlib",
}
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)

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
    elif event in ("os.rename", "os.remove", "os.truncate", "sqlite3.connect"):
        for path in args[:2]:
            if isinstance(path, (str, bytes, os.PathLike)):
                _note(path)


def _note(path: Any) -> None:
    path = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (no links resolved: the hook must stay cheap)
    private = _private is not None and path.startswith(str(_private))  # walked over anyway
    if not private and len(_written) < _MOST_FILES:
        _written.add(path)


def written_files() -> list[Path]:
    """Files outside the private temporary folder that were written so far, and all files inside it."""
    outside = [Path(path) for path in sorted(_written) if not path.startswith(("/proc/", "/dev/"))]
    inside = [Path(folder, name) for folder, _, names in os.walk(_private or "") for name in names]
    return list(dict.fromkeys([*outside, *inside]))[:_MOST_FILES]


# --- places of module globals and class attributes -------------------------------------------------------


def own_modules(env: gym.Env) -> list[Any]:
    """Modules that belong to the environment: of its classes, of their packages, and what these import."""
    names = {cls.__module__ for layer in layers(env) for cls in type(layer).__mro__}
    packages = {name.partition(".")[0] + "." for name in names if "." in name and not foreign(name)}
    names |= {name for name in sys.modules if name.startswith(tuple(packages))}
    for name in list(names):
        for value in list(vars(sys.modules.get(name, object)).values()) if not foreign(name) else ():
            imported = value.__name__ if isinstance(value, type(sys)) else getattr(value, "__module__", None)
            names.add(imported if isinstance(imported, str) else name)
    return [sys.modules[name] for name in sorted(names) if name in sys.modules and not foreign(name)]


def foreign(name: str) -> bool:
    """Whether a module comes with Python or was installed beside the environment's own package."""
    if name.partition(".")[0] in _FOREIGN - {"__main__"}:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None and name != "__main__"


def layers(env: gym.Env) -> Iterator[gym.Env]:
    while True:
        yield env
        if not isinstance(env, gym.Wrapper):
            return
        env = env.env


def places(env: gym.Env) -> Iterator[tuple[str, Any, str]]:
    """(description, owner, attribute) of everything mutable at module level, in classes and functions."""
    seen: set[int] = set()
    for module in own_modules(env):
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, type(sys)):
                continue
            yield f"{module.__name__}.{name}", module, name
            if getattr(value, "__module__", None) == module.__name__ and id(value) not in seen:
                seen.add(id(value))
                if isinstance(value, type):
                    yield from _class_places(value)
                elif callable(value):
                    yield from _function_places(f"{module.__name__}.{name}", value)
    for layer in layers(env):
        for cls in type(layer).__mro__:
            if not foreign(cls.__module__) and id(cls) not in seen:
                seen.add(id(cls))
                yield from _class_places(cls)


def _class_places(cls: type) -> Iterator[tuple[str, Any, str]]:
    for name, value in list(vars(cls).items()):
        function = getattr(value, "__func__", value)
        if callable(function) and hasattr(function, "__closure__"):
            yield from _function_places(f"{cls.__qualname__}.{name}", function)
        elif not name.startswith("__"):
            yield f"{cls.__qualname__}.{name}", cls, name


def _function_places(described: str, function: Any) -> Iterator[tuple[str, Any, str]]:
    function = getattr(function, "__wrapped__", function)
    for name in list(getattr(function, "__dict__", {})):
        if not name.startswith("__"):
            yield f"{described}.{name}", function, name
    for defaults in ("__defaults__", "__kwdefaults__"):
        if getattr(function, defaults, None):
            yield f"the defaults of {described}", function, defaults
    variables = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for variable, cell in zip(variables, getattr(function, "__closure__", None) or ()):
        yield f"the variable {variable} around {described}", cell, "cell_contents"


# --- marks -----------------------------------------------------------------------------------------------

KINDS = ("environment variables", "module and class variables", "files", "open files")


class Mark:
    """What was where, at one moment of an environment."""

    def __init__(self, env: gym.Env) -> None:
        self._variables = dict(os.environ)
        self._values: list[tuple[str, Any, str, Any, Any]] = []
        for described, owner, name in places(env):
            value = _get(owner, name)
            if _watchable(value):
                self._values.append((described, owner, name, value, _keep(value)))
        self._files = {path: _content(path) for path in written_files()}
        self._positions = [(name, handle, handle.tell()) for name, handle in _handles(env)]

    def changed(self) -> dict[str, list[str]]:
        """Names of what is different now, by kind."""
        files = {path for path in {*self._files, *written_files()} if _content(path) != self._files.get(path)}
        return {
            "environment variables": sorted(
                name
                for name in {*self._variables, *os.environ}
                if self._variables.get(name) != os.environ.get(name)
            ),
            "module and class variables": [
                described
                for described, owner, name, value, kept in self._values
                if _get(owner, name) is not value or _differs(value, kept)
            ],
            "files": sorted(map(str, files)),
            "open files": [
                name for name, handle, at in self._positions if not handle.closed and handle.tell() != at
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
            for _, owner, name, value, kept in self._values:
                if _get(owner, name) is not value:
                    setattr(owner, name, value)
                if _differs(value, kept) and not _put(value, kept):
                    setattr(owner, name, copy.deepcopy(kept))
        elif kind == "files":
            for path in {*self._files, *written_files()}:
                _write(path, self._files.get(path))
        elif kind == "open files":
            for _, handle, at in self._positions:
                if not handle.closed:
                    handle.seek(at)


def _get(owner: Any, name: str) -> Any:
    try:
        return vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
    except (AttributeError, KeyError, ValueError):  # deleted since, or an empty cell
        return None


def _watchable(value: Any) -> bool:
    """Data and own objects of moderate size; no code, and no objects of libraries (locks, loggers)."""
    if isinstance(value, (np.generic, np.ndarray, *_GENERATORS)):
        return True
    module = type(value).__module__.partition(".")[0]
    if callable(value) or (module in _FOREIGN and module not in _DATA_MODULES):
        return False
    return _size(value, _MOST_PARTS) + _size(vars_of(value), _MOST_PARTS) < _MOST_PARTS


def vars_of(value: Any) -> dict[str, Any]:
    return getattr(value, "__dict__", {})


def _size(value: Any, limit: int, depth: int = 0) -> int:
    """Number of parts of a nested container, counted up to `limit`."""
    if isinstance(value, np.ndarray):
        return value.size // 64 + 1
    if not isinstance(value, (dict, list, set, tuple, deque)) or depth > 20:
        return 1
    count = 1
    for item in value.values() if isinstance(value, dict) else value:
        count += _size(item, limit, depth + 1)
        if count >= limit:
            break
    return count


def _keep(value: Any) -> Any:
    """A copy to compare with and to put back."""
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.Generator):
        return copy.deepcopy(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return value.get_state()
    try:
        return copy.deepcopy(value)
    except Exception:  # what cannot be copied cannot be watched
        return _UNKEPT


_UNKEPT = object()


def _differs(value: Any, kept: Any) -> bool:
    if kept is _UNKEPT:
        return False
    if isinstance(value, _GENERATORS):
        return Comparison(ignore=()).difference(capture(kept), capture(_keep(value))) is not None
    if type(value).__module__ == "itertools":
        return repr(value) != repr(kept)  # itertools.count tells its number so
    left, right = (vars_of(x) or x for x in (kept, value))
    return Comparison(ignore=()).difference(capture(left), capture(right)) is not None


def _put(value: Any, kept: Any) -> bool:
    """Makes a mutable value what it was, in place, for others hold it too; False where that cannot be."""
    if isinstance(value, random.Random):
        value.setstate(kept)
    elif isinstance(value, np.random.Generator):
        value.bit_generator.state = kept
    elif isinstance(value, np.random.RandomState):
        value.set_state(kept)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(copy.deepcopy(kept))
    elif isinstance(value, (list, bytearray)):
        value[:] = copy.deepcopy(kept)
    elif isinstance(value, deque):
        value.clear()
        value.extend(copy.deepcopy(kept))
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = kept
    elif vars_of(value):
        vars(value).clear()
        vars(value).update(copy.deepcopy(vars(kept)))
    else:
        return isinstance(value, tuple) and all(map(_put, value, kept))
    return True


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= _LARGEST_FILE else b""
    except OSError:
        return None


def _write(path: Path, content: bytes | None) -> None:
    if _content(path) == content:
        return
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _handles(env: gym.Env) -> list[tuple[str, Any]]:
    """Open files among the attributes of the environment and its wrappers."""
    return [
        (f"{type(layer).__name__}.{name}", value)
        for layer in layers(env)
        for name, value in vars(layer).items()
        if isinstance(value, io.IOBase) and not value.closed and value.seekable()
    ]


def describe(changed: dict[str, list[str]], kind: str, most: int = 3) -> str:
    names = changed[kind]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{kind} ({', '.join(names[:most])}{more})"
