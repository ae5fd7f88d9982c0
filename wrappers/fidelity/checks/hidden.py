"""hidden state: nothing outside the declared state has an influence on what happens next.

Two experiments. *Disturb*: global generators, the clock and the working directory are changed between
snapshot and restore. *Rewind*: the environment wanders off; where the continuation after the restore is
wrong, what it left in environment variables, module and class variables and files is put back, one kind at a
time. The kind that makes the continuation right again holds the hidden state, and is named. A cache changes
too, but nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..context import Context, Episode, Finding
from ..disturb import DISTURBANCES
from ..files import watch_files
from ..oracle import Event
from ..program import Failure, Op, Program, Run, events
from ..watch import KINDS, Mark, describe
from .restoring import occasions, wanderings


def check(context: Context) -> Finding:
    watch_files(context.private)
    tried = sound = 0
    touched: dict[str, list[str]] = {}
    for number, (episode, at) in enumerate(_early_first(context)):
        tried += 1
        found = _disturb(context, episode, at, number) or _rewind(context, episode, at, number, touched)
        if isinstance(found, Finding):
            return found
        sound += found is None
        if context.enough(tried, 0.4):
            break
    if not sound:
        return Finding("the plain round trip fails already, so that no influence can be told", skipped=True)
    text = f"{tried} moments, {len(DISTURBANCES)} disturbances each: no influence"
    seen = [describe(touched, kind) for kind in KINDS if touched.get(kind)]
    return Finding(text + (f"; changed without influence: {', '.join(seen)}" if seen else ""))


def _early_first(context: Context) -> Iterator[tuple[Episode, int]]:
    """Moments with a long way to go come first: more can show."""
    yield from ((episode, min(2, len(episode.all_events))) for episode in context.episodes[:2])
    yield from occasions(context)


@dataclass
class _Unsound:
    """The control (no disturbance) fails already at this moment."""


def _disturb(context: Context, episode: Episode, at: int, number: int) -> Finding | _Unsound | None:
    control = _disturbed(episode, at, None)
    if context.run(control) is not None:
        return _Unsound()
    for name, disturb in DISTURBANCES.items():
        if number and context.enough(number, 0.3):  # all of them are tried at the first moment
            break
        failure = context.run(_disturbed(episode, at, Op("call", value=disturb, label=f"# disturb {name}")))
        if failure is not None and context.run(control) is None:
            finding = context.failed(failure, lambda program: _with_call(context, program))
            finding.detail = f"{name} has an influence: {finding.detail}"
            return finding
    return None


def _with_call(context: Context, program: Program) -> Failure | None:
    """A program counts as failing only where it still disturbs, and would not fail undisturbed."""
    if not any(op.kind == "call" for op in program):
        return None
    if context.run([op for op in program if op.kind != "call"]) is not None:
        return None
    return context.run(program)


def _disturbed(episode: Episode, at: int, disturbance: Op | None) -> Program:
    played = episode.all_events
    return [
        Op("make"),
        *events(played[:at]),
        Op("snapshot", value="s"),
        *([disturbance] if disturbance else []),
        Op("restore", value="s"),
        *events(played[at:]),
    ]


# --- rewind ----------------------------------------------------------------------------------------------


def _rewind(
    context: Context, episode: Episode, at: int, number: int, touched: dict[str, list[str]]
) -> Finding | _Unsound | None:
    """Wanders off and goes back: in the same instance, or (every second time) in a new one."""
    wander = wanderings(context, episode, at, number)
    new = number % 2 == 1
    failure, changed = _excursion(context, episode, at, wander, new, ())
    for kind in KINDS:
        touched[kind] = sorted({*touched.get(kind, ()), *changed.get(kind, ())})
    if failure is None:
        return None
    if _excursion(context, episode, at, [], new, ())[0] is not None:
        return _Unsound()
    suspected = [kind for kind in KINDS if changed.get(kind)]
    for kinds in [*((kind,) for kind in suspected), tuple(suspected)]:
        if kinds and _excursion(context, episode, at, wander, new, kinds)[0] is None:
            named = " and ".join(describe(changed, kind) for kind in kinds)
            return _named(context, failure, f"{named} (with it put back, the continuation is right)")
    if new:  # nothing of the first instance can reach the second but through something outside both
        seen = ", ".join(describe(changed, kind) for kind in suspected)
        return _named(
            context, failure, "something outside the instance" + (f"; what changed: {seen};" if seen else "")
        )
    return None


def _named(context: Context, failure: Failure, culprit: str) -> Finding:
    finding = context.failed(failure, context.run)
    finding.detail = f"{culprit} has an influence: {finding.detail}"
    return finding


def _excursion(
    context: Context, episode: Episode, at: int, wander: list[Event], new: bool, kinds: tuple[str, ...]
) -> tuple[Failure | None, dict[str, list[str]]]:
    """Runs an excursion and puts `kinds` back before the way on; tells what had changed until then.

    new: go on in a new instance. Files are put back before the restore too, which may read them.
    """
    marks: list[Mark] = []
    changed: dict[str, list[str]] = {}
    run: Run

    def mark() -> None:
        marks.append(Mark(run.live["a"].env))

    def put_back() -> None:
        for kind, names in marks[0].changed().items():
            changed[kind] = sorted({*changed.get(kind, ()), *names})
        for kind in kinds:
            marks[0].rewind(kind)

    played = episode.all_events
    last = "b" if new else "a"
    program: list[Any] = [
        Op("make"),
        *events(played[:at]),
        Op("call", value=mark),
        Op("snapshot", value="s"),
        *events(wander, checked=False),
        Op("call", value=put_back),
        *([Op("make", "b")] if new else []),
        Op("restore", last, "s"),
        *([] if new else [Op("call", value=put_back)]),
        *events(played[at:], last),
    ]
    run = Run(context.oracle, program, context.comparison)
    failure = run.failure()
    if failure is not None:
        failure.at -= sum(op.kind == "call" for op in failure.program[: failure.at])
        failure.program = [op for op in failure.program if op.kind != "call"]
    return failure, changed
