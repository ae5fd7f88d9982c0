"""The shortest program that still fails: delta debugging (Zeller and Hildebrandt, 2002).

Chunks of operations are left out, in ever smaller chunks, and what still fails is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(items: Sequence[T], fails: Callable[[list[T]], bool], enough: Callable[[], bool]) -> list[T]:
    """A sublist of `items` for which `fails` holds and no single item can be left out (one-minimal).

    `items` itself must fail. Stops early, with the best so far, when `enough()` says so.
    """
    kept = list(items)
    size = max(1, len(kept) // 2)
    while not enough():
        start, shorter = 0, False
        while start < len(kept) and not enough():
            candidate = kept[:start] + kept[start + size :]
            if fails(candidate):
                kept, shorter = candidate, True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not shorter:
            break
    return kept
