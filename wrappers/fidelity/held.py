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
_MOST = 4_000  # objects that are looked into, the shallow ones first


def parts_held(env: gym.Env) -> float:
    """Parts in the attributes of `env` and its wrappers, and of their modules' and classes' variables."""
    queue: deque[Any] = deque(vars(layer) for layer in layers(env))
    queue.extend(value_at(owner, name) for _, owner, name in places(env))
    seen: set[int] = set()
    count = 0
    while queue and len(seen) < _MOST:
        value = queue.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        count += _own_parts(value)
        queue.extend(_inside(value))
    return float(count)


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
