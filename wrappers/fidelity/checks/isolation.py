"""isolation: forks alive at once and stepped in turn go each as if alone, and so does their parent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from ..context import Context, Finding
from ..program import Op, Program, events
from .restoring import branch, occasions

_LONGEST = 60  # steps of a fork


def check(context: Context) -> Finding:
    finding = context.search(_programs(context), "group")
    if finding.passed:
        finding.detail += " of a parent, two forks and a stranger, stepped in turn"
    return finding


def _programs(context: Context) -> Iterator[Program]:
    for number, (episode, at) in enumerate(occasions(context)):
        played = episode.all_events
        stranger = context.episodes[(context.episodes.index(episode) + 1) % len(context.episodes)].events
        first = branch(context, played[:at], _LONGEST, 2 * number)
        second = branch(context, played[:at], _LONGEST, 2 * number + 1)
        lanes = {
            "a": events(played[at : at + _LONGEST]),
            "b": events(first, "b"),
            "c": events(second, "c"),
            "d": events(stranger[1:_LONGEST], "d"),
        }
        half = len(first) // 2
        yield [
            Op("make"),
            *events(played[:at]),
            Op("snapshot", value="s"),
            *(Op("make", "b"), Op("restore", "b", "s")),
            *(Op("make", "d"), *events(stranger[:1], "d")),
            *(Op("make", "c"), Op("restore", "c", "s")),
            *_in_turn(lanes["a"], lanes["b"][:half], lanes["c"][:half], lanes["d"]),
            Op("close", "d"),
            *_in_turn(lanes["b"][half:], lanes["c"][half:]),
            Op("close", "b"),
            *(Op("restore", "c", "s"), *lanes["c"]),
        ]


def _in_turn(*lanes: Sequence[Op]) -> list[Op]:
    return [op for turn in zip_longest(*lanes) for op in turn if op is not None]
