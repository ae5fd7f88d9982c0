"""Actions that can be carried out as they stand, for agents and tests that choose from a list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from bpo_envs.webshop.session import parse_action

_PRICE = re.compile(r",? and price lower than [\d.]+ dollars$")
_OPTIONS = re.compile(r" with [^:,]+: .*$")
_UNSEARCHABLE = re.compile(r"[\[\]\s]+")


@lru_cache(maxsize=4096)
def _searches(instruction: str) -> tuple[str, ...]:
    wish = _PRICE.sub("", instruction)
    product = _OPTIONS.sub("", wish)
    head = " ".join(product.split()[:8])
    queries = (_UNSEARCHABLE.sub(" ", query).strip() for query in (instruction, wish, product, head))
    return tuple(dict.fromkeys(f"search[{query}]" for query in queries if query))


def searches(instruction: str) -> list[str]:
    """A few searches that the instruction suggests: all of it, without price, without options, its head."""
    return list(_searches(instruction))


def clicks(clickable: Iterable[str]) -> list[str]:
    """The clicks that the environment understands: some option values hold brackets, which it misreads."""
    return [f"click[{text}]" for text in clickable if _understood(text)]


@lru_cache(maxsize=65536)
def _understood(text: str) -> bool:
    return text != "search" and parse_action(f"click[{text}]") == ("click", text)
