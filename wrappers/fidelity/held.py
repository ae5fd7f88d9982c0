"""How much data an environment holds: parts of its containers, letters, bytes of arrays, counted one by one.

Unlike the memory of the process this number is exact, so that one pointer more shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from .places import foreign, layers, places, value_at

_SIZED = (dict, list, tuple, set, frozenset, deque, str, bytes, bytearray)
_MOST = 200  # objects below one attribute that are looked into


def parts_held(env: gym.Env) -> dict[str, int]:
    """Parts by attribute of `env` and its wrappers, and by variable of their modules and classes."""
    roots = [
        (f"{type(layer).__name__}.{name}", value)
        for layer in layers(env)
        for name, value in vars(layer).items()
    ]
    roots += [(described, value_at(owner, name)) for described, owner, name in places(env)]
    return {name: _count(value) for name, value in roots}


def _count(root: Any) -> int:
    """Parts in and below one value, breadth first, so that what is left out lies deep."""
    queue: deque[Any] = deque([root])
    seen: set[int] = set()
    count = 0
    while queue and len(seen) < _MOST:
        value = queue.popleft()
        if id(value) not in seen:
            seen.add(id(value))
            count += _own_parts(value)
            queue.extend(_inside(value))
    return count


def most_grown(before: dict[str, int], after: dict[str, int]) -> str:
    """The attribute or variable that grew most."""
    return max(after, key=lambda name: after[name] - before.get(name, 0), default="")


def _own_parts(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return len(value) if isinstance(value, _SIZED) else 0


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (item for item in value.values() if not isinstance(item, (int, float, type(None))))
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from (item for item in value if not isinstance(item, (int, float, type(None))))
    elif not callable(value) and not foreign(type(value).__module__):
        yield getattr(value, "__dict__", {})
