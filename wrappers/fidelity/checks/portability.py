"""portability: bytes of a snapshot, restored in a new process, lead to the same continuation."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from ..compare import RAISED, Difference
from ..context import Context, Finding
from ..elsewhere import Elsewhere, Task
from ..oracle import Event, Node, perform
from ..program import Failure, Op, events, printable
from .restoring import occasions

_HASH_SEED = 4
_MOST = 24  # snapshots that travel
_LONGEST = 300  # steps of a continuation


def check(context: Context) -> Finding:
    if context.capability == "memory":
        return Finding("capability 'memory': snapshots stay in their process", skipped=True)
    if context.unwritten is not None:
        return Finding(f"snapshots cannot be written: {context.unwritten}", skipped=True)
    tasks, nodes, starts, held = [], [], [], []
    env = context.target.make()
    try:
        for number, (episode, at) in enumerate(islice(occasions(context), _MOST)):
            env.close()
            env = context.target.make()
            played = episode.all_events[: at + _LONGEST]
            node = context.oracle.root
            for event in played[:at]:
                perform(env, event, context.comparison)
                node = node.child(event)
            held.append(env.snapshot())  # kept until the end: it may hold files
            before = [context.reset_event(episode.seed + 1)] if number % 2 else []
            tasks.append(Task(played[at:], held[-1].to_bytes(), before))
            starts.append(node)
            for event in played[at:]:
                node = node.child(event)
            nodes.append(node)
            if context.time_is_up:
                break
        here = str(Path.cwd())
        found = Elsewhere(context.target, context.comparison, tasks, _HASH_SEED, here).answers()
    except RuntimeError as error:
        return _crashed(nodes[0].events(), starts[0].depth, error)
    finally:
        env.close()
        for snapshot in held:
            snapshot.close()
    context.oracle.fill(nodes)
    failures = [_differs(context, *parts) for parts in zip(starts, nodes, found)]
    shortest = min((failure for failure in failures if failure), key=lambda f: f.at, default=None)
    if shortest:
        return Finding(
            f"restored from bytes in a new process, {shortest}", False, reproduce=shortest.reproduce()
        )
    return Finding(f"{len(tasks)} snapshots, restored from bytes in a new process")


def _crashed(played: list[Event], at: int, error: RuntimeError) -> Finding:
    """The finding where the new process ended without an answer."""
    detail = f"restored from bytes in a new process: {error}"
    program = [Op("make"), *events(played[:at]), Op("snapshot", value="s")]
    actions = [printable(event.value) for event in played[:at] if event.kind == "step"]
    code = "\n".join([*map(str, program), f"# {detail}"])
    return Finding(detail, False, reproduce={"seed": played[0].value[0], "actions": actions, "code": code})


def _differs(context: Context, start: Node, end: Node, answers: list[dict]) -> Failure | None:
    played, at = end.events(), start.depth
    program = [
        Op("make"),
        *events(played[:at]),
        Op("snapshot", value="s"),
        *(Op("make", "b"), Op("restore", "b", "s"), *events(played[at:], "b")),
    ]
    for number, (node, answer) in enumerate(zip(end.path()[at - 1 :], answers)):
        if "raised" in answer:
            return Failure(program, at + 3 + number, node, Difference(RAISED, None, answer["raised"]))
        expected = {key: (node.answer or {}).get(key) for key in answer}
        different = context.comparison.difference(expected, answer)
        if different:
            return Failure(program, at + 3 + number, node, different)
    return None
