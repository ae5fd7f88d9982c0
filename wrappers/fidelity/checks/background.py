"""background work: no thread, child process or timer of the environment outlives a step.

What runs on between steps is not in a snapshot, and may change the environment behind its back.
"""

from __future__ import annotations

import copy
from typing import Any

from ..context import Context, Finding
from ..oracle import Event
from ..program import Op, events, printable
from ..running import running_on


def check(context: Context) -> Finding:
    looks = 0
    left = running_on(context.baseline)  # by the recording of episodes, where no clean process did that
    for episode in context.episodes:
        found = _episode(context, episode.events, {*context.baseline, *left})
        if isinstance(found, Finding):
            return found
        looks += found
        if context.time_is_up:
            break
    if left:
        detail = f"after {len(context.episodes)} episodes: {', '.join(sorted(left.values()))}"
        program = [Op("make"), *events(context.episodes[0].events)]
        actions = [printable(event.value) for event in context.episodes[0].events[1:]]
        code = "\n".join(map(str, program)) + f"  # {detail}"
        seed = context.episodes[0].seed
        return Finding(detail, False, reproduce={"seed": seed, "actions": actions, "code": code})
    return Finding(
        f"looked {looks} times, after making, resets, steps, snapshots and restores: nothing ran on"
    )


def _episode(context: Context, played: list[Event], before: set[Any]) -> Finding | int:
    program: list[Op] = []
    looks = 0

    def new(op: Op) -> Finding | None:
        nonlocal looks
        program.append(op)
        looks += 1
        ran_on = running_on(before)
        if not ran_on:
            return None
        what = "making the environment" if op.kind == "make" else str(op)
        steps = [o.value.value for o in program if o.kind == "event" and o.value.kind == "step"]
        detail = f"after {what} (step {len(steps)}): {', '.join(sorted(set(ran_on.values())))}"
        code = "\n".join(map(str, program)) + f"  # {detail}"
        seed = played[0].value[0]
        actions = [printable(action) for action in steps]
        return Finding(detail, False, reproduce={"seed": seed, "actions": actions, "code": code})

    env = context.target.make()
    try:
        found = new(Op("make"))
        for event in played:
            if found:
                break
            if event.kind == "reset":
                seed, options = copy.deepcopy(event.value)
                env.reset(seed=seed, options=options)
            else:
                env.step(copy.deepcopy(event.value))
            found = new(events([event])[0])
            if not found and context.refusal is None and looks < 60:
                snapshot = env.snapshot()
                found = new(Op("snapshot", value="s"))
                env.restore(snapshot)
                found = found or new(Op("restore", value="s"))
                snapshot.close()
            if context.time_is_up:
                break
    finally:
        env.close()
    return found or looks
