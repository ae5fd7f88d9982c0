"""Copies of what an environment answered, and the first place where two of them differ.

Environments reuse buffers and hand out live objects, so an answer is copied when it arrives. Numbers compare
by value (NaN equals NaN), arrays with shape and dtype, containers with their kind. An object whose class
defines no equality cannot be compared; its place is remembered, so that the report can say so.
"""

from __future__ import annotations

import copy
import enum
import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np

from ..errors import brief

DEFAULT_IGNORE = (
    "info.episode.t",
    "info.final_info.episode.t",
    "info.elapsed_time",
    "info.timestamp",
    "info.wall_clock",
    "info.wall_time",
)
"""Fields that hold a clock by convention: their paths, in the patterns of `fnmatch`."""

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_MAX_DEPTH = 60

Path = tuple[Any, ...]

RAISED: Path = ("exception",)


@dataclass(frozen=True)
class Opaque:
    """Stands for an object that cannot be copied or has no equality."""

    kind: str

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


@dataclass(frozen=True)
class Difference:
    """The first place where two values differ: a path such as `info.prices[2]`, and both values there."""

    path: Path
    expected: Any
    found: Any

    @property
    def where(self) -> str:
        text = ""
        for part in self.path:
            if isinstance(part, str) and part.isidentifier():
                text += f".{part}" if text else part
            elif isinstance(part, tuple):
                text += f"[{', '.join(map(str, part))}]"
            else:
                text += f"[{part!r}]"
        return text or "value"

    def __str__(self) -> str:
        expected, found = _contrast(self.expected, self.found)
        return f"{self.where}: expected {expected}, found {found}"


def _contrast(expected: Any, found: Any) -> tuple[str, str]:
    """Both values as short text; of long texts the part where they begin to differ."""
    if isinstance(expected, str) and isinstance(found, str) and max(len(expected), len(found)) > 80:
        pairs = enumerate(zip(expected, found))
        at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))
        start = max(0, at - 20)
        dots = "..." if start else ""
        return dots + brief(expected[start:]), dots + brief(found[start:])
    left, right = brief(expected, 120), brief(found, 120)
    if left == right:
        left, right = f"{left} ({type(expected).__name__})", f"{right} ({type(found).__name__})"
    return left, right


def capture(value: Any, depth: int = 0) -> Any:
    """A copy that shares nothing mutable with `value`, ready to be compared."""
    if isinstance(value, _ATOMS):
        return value
    if depth > _MAX_DEPTH:
        return Opaque("nested too deep")
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, _ATOMS) else capture(key, depth + 1): capture(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, tuple):
        return tuple([capture(item, depth + 1) for item in value])
    if isinstance(value, list):
        return [capture(item, depth + 1) for item in value]
    if isinstance(value, np.ndarray):
        return capture(value.tolist(), depth + 1) if value.dtype.hasobject else value.copy()
    if isinstance(value, np.generic):
        return value
    if type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach"):
        return value.detach().cpu().numpy().copy()
    return _capture_object(value)


def _capture_object(value: Any) -> Any:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if type(value).__eq__ is object.__eq__:
        return Opaque(kind)
    try:
        copied = copy.deepcopy(value)
        return copied if bool(copied == value) else Opaque(kind)
    except Exception:  # a foreign class may raise anything here
        return Opaque(kind)


@dataclass
class Comparison:
    """Rules of comparing answers, and what they left out so far.

    ignore: patterns of paths that are not looked at, parts joined by dots ("info.episode.t").
    normalize: applied to every answer (a dict with observation, reward, ...) before it is compared.
    only: the parts of an answer that are looked at, None for all.
    not_compared: paths of objects without equality that were met.
    """

    ignore: tuple[str, ...] = DEFAULT_IGNORE
    normalize: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    only: tuple[str, ...] | None = None
    not_compared: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._pattern = re.compile("|".join(map(fnmatch.translate, self.ignore)) or r"(?!)")

    def answer(self, **parts: Any) -> dict[str, Any]:
        """A copy of one answer of the environment, normalized."""
        copied = capture(parts)
        return copied if self.normalize is None else capture(self.normalize(copied))

    def difference(self, expected: Any, found: Any, path: Path = ()) -> Difference | None:
        """The first difference, or None."""
        if path and self._ignored(path):
            return None
        if isinstance(expected, Opaque) and isinstance(found, Opaque):
            self.not_compared.add(Difference(path, None, None).where)
            return None if expected.kind == found.kind else Difference(path, expected, found)
        if isinstance(expected, dict) and isinstance(found, dict):
            return self._dicts(expected, found, path)
        if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
            return self._sequences(expected, found, path)
        if isinstance(expected, np.ndarray) or isinstance(found, np.ndarray):
            return _arrays(expected, found, path)
        return None if _equal(expected, found) else Difference(path, expected, found)

    def _ignored(self, path: Path) -> bool:
        if self.only is not None and not any(
            path[: len(want)] == want[: len(path)] for want in (tuple(p.split(".")) for p in self.only)
        ):
            return True
        return bool(self._pattern.fullmatch(".".join(map(str, path))))

    def _dicts(self, expected: dict, found: dict, path: Path) -> Difference | None:
        for key, value in expected.items():
            different = self.difference(value, found.get(key, ABSENT), (*path, key))
            if different:
                return different
        for key in found.keys() - expected.keys():
            different = self.difference(ABSENT, found[key], (*path, key))
            if different:
                return different
        return None

    def _sequences(self, expected: list | tuple, found: list | tuple, path: Path) -> Difference | None:
        if isinstance(expected, list) != isinstance(found, list):
            return Difference(path, expected, found)
        for index, (left, right) in enumerate(zip(expected, found)):
            different = self.difference(left, right, (*path, index))
            if different:
                return different
        if len(expected) != len(found):
            index = min(len(expected), len(found))
            one = expected[index] if index < len(expected) else ABSENT
            other = found[index] if index < len(found) else ABSENT
            return Difference((*path, index), one, other)
        return None


def _arrays(expected: Any, found: Any, path: Path) -> Difference | None:
    if type(expected) is not type(found):
        return Difference(path, expected, found)
    if expected.dtype != found.dtype:
        return Difference((*path, "dtype"), str(expected.dtype), str(found.dtype))
    if expected.shape != found.shape:
        return Difference((*path, "shape"), expected.shape, found.shape)
    unequal = expected != found
    if expected.dtype.kind in "fc":
        unequal &= ~(np.isnan(expected) & np.isnan(found))
    if not unequal.any():
        return None
    index = tuple(int(i) for i in np.argwhere(unequal)[0])
    return Difference((*path, index) if index else path, expected[index].item(), found[index].item())


def _equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, Number) and isinstance(found, Number):
        return bool(expected == found) or (expected != expected and found != found)
    if isinstance(expected, str) != isinstance(found, str):
        return False
    try:
        return bool(expected == found)
    except Exception:  # a foreign __eq__ that cannot answer does not say that they are equal
        return False
