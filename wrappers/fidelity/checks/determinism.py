"""determinism: the same seed and actions give the same trace, wherever and whenever they are played.

At once, in another instance, after other episodes, in a new process, under another PYTHONHASHSEED, in another
working directory. What wrappers remember of earlier episodes (running means) is put back before a repeat: it
is part of their declared state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import SnapshotError
from ..compare import RAISED, Difference
from ..context import Context, Episode, Finding
from ..elsewhere import Answers, Elsewhere, Task, play
from ..oracle import Event, Node, now, perform
from ..program import Failure, Op, events
from ..shrink import shrink

Player = Callable[[list[Event]], Answers]


def check(context: Context) -> Finding:
    players = {
        "in another instance": lambda played: _here(context, played),
        "at once, in the same instance": lambda played: _again(context, played, []),
        "in the same instance after other episodes": lambda played: _again(context, played, context.episodes),
    }
    for episode in context.episodes:
        for name, player in players.items():
            failure = _differs(context, episode.events, player)
            if failure:
                return _finding(context, failure, name, player)
        if context.time_is_up:
            break
    return _elsewhere(context) or Finding(_summary(context, len(players)))


def _summary(context: Context, here: int) -> str:
    longest = max(episode.length for episode in context.episodes)
    text = (
        f"{len(context.episodes)} episodes of up to {longest} steps, the same in {here} ways here and in "
        f"{len(context.settings.hash_seeds)} new processes (PYTHONHASHSEED, working directory)"
    )
    if not context.unseeded_repeats:
        text += "; a reset without a seed draws new entropy, so nothing was compared beyond one"
    return text


def _here(context: Context, played: list[Event]) -> Answers:
    return play(context.target, context.comparison, Task(played))


def _again(context: Context, played: list[Event], others: list[Episode]) -> Answers:
    """The trace of an instance that has lived before."""
    env = context.target.make()
    try:
        remembered = _wrappers(env)
        for number, episode in enumerate(others or [Episode(0, _node(context, played))]):
            lived = episode.events
            if others:  # of different lengths, and left before their ends
                lived = lived[: max(2, len(lived) - 1 - 3 * number)]
            for event in lived:
                perform(env, event, context.comparison)
        if env._stack.layers:
            if remembered is None:
                return []  # nothing tells what the wrappers carry over, which coverage has named
            env._stack.restore(remembered)
        return _play(context, env, played)
    finally:
        env.close()


def _wrappers(env: Any) -> tuple | None:
    try:
        return env._stack.capture()
    except SnapshotError:
        return None


def _play(context: Context, env: Any, played: list[Event]) -> Answers:
    answers: Answers = []
    for event in played:
        try:
            answers.append(perform(env, event, context.comparison))
        except Exception as error:
            answers.append({"raised": f"{type(error).__name__}: {error}"})
            break
        if answers[-1].get("terminated") or answers[-1].get("truncated"):
            break
    return answers


def _node(context: Context, played: list[Event]) -> Node:
    node = context.oracle.root
    for event in played:
        node = node.child(event)
    return node


def _differs(context: Context, played: list[Event], player: Player) -> Failure | None:
    """The first difference between what the oracle has for these events and what `player` gets."""
    node = _node(context, played)
    context.oracle.fill([node])
    return _compare(context, node, player(played))


def _compare(context: Context, node: Node, answers: Answers) -> Failure | None:
    path = node.path()
    program = [Op("make"), *events(node.events())]
    for index, (at, answer) in enumerate(zip(path, answers)):
        if "raised" in answer:
            return Failure(program, index + 1, at, Difference(RAISED, None, answer["raised"]))
        different = context.comparison.difference(at.answer, answer)
        if different:
            return Failure(program, index + 1, at, different)
    return None


def _finding(context: Context, failure: Failure, where: str, player: Player) -> Finding:
    until = now() + max(0.5, context.settings.budget)
    best = failure
    played = failure.node.events()

    def fails(steps: list[Event]) -> bool:
        nonlocal best
        try:
            found = _differs(context, [played[0], *steps], player)
        except Exception:  # the environment cannot live through this shorter history
            return False
        if found:
            best = found
        return found is not None

    shrink(played[1:], fails, lambda: now() > until)
    return Finding(f"{where}, {best}", passed=False, reproduce=best.reproduce())


# --- in new processes ------------------------------------------------------------------------------------


def _elsewhere(context: Context) -> Finding | None:
    """New processes that differ in everything at once; what differs is then looked for one by one."""
    nodes = [episode.end for episode in context.episodes]
    everything = [(None, seed) for seed in context.settings.hash_seeds]
    for hash_seed, found in zip(context.settings.hash_seeds, _processes(context, nodes, everything)):
        for node, answers in zip(nodes, found):
            failure = _compare(context, node, answers)
            if failure:
                return _named(context, failure, hash_seed)
    return None


def _processes(
    context: Context, nodes: list[Node], settings: Sequence[tuple[str | None, int]]
) -> list[list[Answers]]:
    tasks = [Task(node.events()) for node in nodes]
    running = [
        Elsewhere(context.target, context.comparison, tasks, hash_seed, cwd) for cwd, hash_seed in settings
    ]
    return [process.answers() for process in running]


def _named(context: Context, failure: Failure, hash_seed: int) -> Finding:
    here, own = str(Path.cwd()), int(os.environ.get("PYTHONHASHSEED", "0") or 0)
    causes = {
        "in a new process": (here, own),
        f"in a new process with PYTHONHASHSEED={hash_seed}": (here, hash_seed),
        "in a new process with another working directory": (None, own),
    }
    where = "in a new process with another PYTHONHASHSEED and working directory"
    for (name, _), found in zip(causes.items(), _processes(context, [failure.node], list(causes.values()))):
        again = _compare(context, failure.node, found[0])
        if again:
            where, failure = name, again
            break
    reproduce = failure.reproduce()
    return Finding(f"{where}, {failure}", passed=False, reproduce=reproduce)
