"""coverage: the base environment and every wrapper can be captured, at any moment of an episode."""

from __future__ import annotations

import copy

from ...errors import SnapshotError
from ..context import Context, Episode, Finding


def check(context: Context) -> Finding:
    if context.refusal is not None:
        return Finding(context.refusal, passed=False, reproduce=_reproduce(context, [], context.refusal))
    moments = 0
    for episode in context.episodes:
        try:
            moments += _capture_everywhere(context, episode)
        except _Uncaptured as error:
            return Finding(str(error), passed=False, reproduce=_reproduce(context, error.actions, str(error)))
        if context.time_is_up:
            break
    detail = f"{_names(context)}; captured and restored at {moments} moments"
    if context.unwritten is not None and context.capability != "memory":
        detail += (
            ". Snapshots cannot be written as bytes, for the observation and info of the moment travel in "
            f"them: {context.unwritten}"
        )
    return Finding(detail)


class _Uncaptured(Exception):
    def __init__(self, message: str, actions: list) -> None:
        super().__init__(message)
        self.actions = actions


def _capture_everywhere(context: Context, episode: Episode) -> int:
    env = context.target.make()
    moments = 0
    actions: list = []
    try:
        env.reset(seed=episode.seed, options=copy.deepcopy(episode.events[0].value[1]))
        for event in [None, *episode.events[1:]]:
            if event is not None:
                actions.append(event.value)
                over = env.step(copy.deepcopy(event.value))[2:4]
            try:
                with env.snapshot() as snapshot:
                    env.restore(snapshot)
                    if context.unwritten is None:
                        snapshot.to_bytes()
            except Exception as error:  # the environment's get_state and set_state may raise anything
                kind = "" if isinstance(error, SnapshotError) else f"{type(error).__name__}: "
                raise _Uncaptured(f"after step {len(actions)}: {kind}{error}", actions) from None
            moments += 1
            if (event is not None and any(over)) or context.time_is_up:
                break
    finally:
        env.close()
    return moments


def _names(context: Context) -> str:
    env = context.target.make()
    try:
        wrappers = [type(layer.wrapper).__name__ for layer in env._stack.layers]
        return f"{type(env.unwrapped).__name__} ({env.capability}) in {', '.join(wrappers) or 'no wrapper'}"
    finally:
        env.close()


def _reproduce(context: Context, actions: list, message: str) -> dict:
    from ..program import literal, printable

    seed = context.settings.seed
    lines = ["a = make()", f"a.reset(seed={seed})", *(f"a.step({literal(action)})" for action in actions)]
    return {
        "seed": seed,
        "actions": [printable(action) for action in actions],
        "code": "\n".join([*lines, f"a.snapshot()  # {message}"]),
    }
