"""Which attributes of an environment a restore left wrong: a hint for its author, never a verdict."""

from __future__ import annotations

import contextlib
from typing import Any

import gymnasium as gym

from ..errors import brief
from .compare import Comparison, capture
from .oracle import perform
from .program import Failure, Run

_SHOWN = 4
_SKIP = frozenset(
    {"_np_random", "_np_random_seed", "spec", "render_mode", "action_space", "observation_space"}
)


def suspects(context: Any, failure: Failure) -> str:
    """Attributes of the base environment that differ from the oracle's after the last restore, as text."""
    before = [i for i, op in enumerate(failure.program[: failure.at + 1]) if op.kind == "restore"]
    if not before:
        return ""
    try:
        return _compare(context, failure, before[-1])
    except Exception:  # looking at foreign attributes may fail in any way, and is only a hint
        return ""


def _compare(context: Any, failure: Failure, at: int) -> str:
    run = Run(context.oracle, failure.program[: at + 1], context.comparison)
    with contextlib.ExitStack() as undo:
        undo.callback(run.close)
        for index, op in enumerate(run.program):
            run.operate(index, op, undo)
        live = run.live[failure.program[at].env]
        found = _attributes(live.env)
        twin = context.oracle.make()
        undo.callback(twin.close)
        for event in live.node.events():
            perform(twin, event, context.comparison)
        expected = _attributes(twin)
    texts = []
    for name in sorted(expected.keys() | found.keys()):
        different = Comparison(ignore=()).difference(expected.get(name), found.get(name), (name,))
        if different:
            texts.append(
                f"{different.where} ({brief(different.found, 40)}, not {brief(different.expected, 40)})"
            )
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _attributes(env: gym.Env) -> dict[str, Any]:
    return {name: capture(value) for name, value in vars(env.unwrapped).items() if name not in _SKIP}
