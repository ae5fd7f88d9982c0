"""Programs: what a check does with environments, as data that can be run, compared, shortened and printed.

An operation makes, resets, steps, captures or restores one of several live environments, known by letters.
Running a program keeps the history (oracle.py) that each environment should have; every answer must be the
oracle's answer to that history. A program runs whatever is left out of it: operations that have become
impossible are passed over. That is what lets it be shortened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from ..errors import brief
from ..snapshot import Snapshot
from .compare import RAISED, Comparison, Difference
from .oracle import Event, Node, Oracle, perform


@dataclass(frozen=True)
class Op:
    """One operation.

    kind: "make", "event" (value: Event), "snapshot" or "restore" (value: a name), "close", or "call"
        (value: a function without arguments, which may return one that undoes it; `label` prints it).
    checked: compare the answer with the oracle; wandering off need not be.
    """

    kind: str
    env: str = "a"
    value: Any = None
    label: str = ""
    checked: bool = True

    def __str__(self) -> str:
        if self.kind == "make":
            return f"{self.env} = make()"
        if self.kind == "event" and self.value.kind == "reset":
            seed, options = self.value.value
            given = f"seed={seed!r}" if seed is not None else ""
            given += f"{', ' if given else ''}options={options!r}" if options else ""
            return f"{self.env}.reset({given})"
        if self.kind == "event":
            return f"{self.env}.step({literal(self.value.value)})"
        if self.kind == "snapshot":
            return f"{self.value} = {self.env}.snapshot()"
        if self.kind == "restore":
            return f"{self.env}.restore({self.value})"
        return self.label or f"{self.env}.{self.kind}()"


Program = Sequence[Op]


def events(items: Sequence[Event], env: str = "a", checked: bool = True) -> list[Op]:
    return [Op("event", env, event, checked=checked) for event in items]


@dataclass
class Failure:
    """The first operation of a program whose answer is not the oracle's."""

    program: list[Op]
    at: int
    node: Node
    difference: Difference

    @property
    def operation(self) -> Op:
        return self.program[self.at]

    @property
    def step(self) -> int:
        """The step of the episode at which the answer differs, 0 for a reset."""
        return self.node.steps_in_episode()

    def __str__(self) -> str:
        op = self.operation
        what = f"step {self.step}" if self.step else "reset"
        if op.kind == "restore":
            what = f"restore at {what}"
        elif op.kind != "event":
            what = str(op)
        if self.difference.path == RAISED:
            return f"{what} raised {self.difference.found}"
        return f"{what}: {self.difference}"

    def reproduce(self) -> dict[str, Any]:
        """Plain data: seed and actions of the failing environment's history, and the program as code."""
        path = self.node.events()
        seeds = [event.value[0] for event in path if event.kind == "reset"]
        last = max((i for i, event in enumerate(path) if event.kind == "reset"), default=-1)
        return {
            "seed": next((seed for seed in reversed(seeds) if seed is not None), None),
            "actions": [printable(event.value) for event in path[last + 1 :]],
            "step": self.step,
            "field": self.difference.where,
            "expected": printable(self.difference.expected),
            "found": printable(self.difference.found),
            "operations": [str(op) for op in self.program[: self.at + 1]],
            "code": "\n".join([*map(str, self.program[: self.at + 1])]) + f"  # {self}",
        }


def _possible(event: Event, live: _Live) -> bool:
    """No step beyond an end; no unseeded reset before a seeded one, for it would draw new entropy."""
    if event.kind == "step":
        return live.begun and not live.over
    return live.begun or event.value[0] is not None


def literal(value: Any) -> str:
    """Python text of an action, numpy scalars as plain numbers."""
    return brief(value.item() if isinstance(value, np.generic) else value, 200)


def printable(value: Any) -> Any:
    """A JSON value: the value itself where JSON has it, else its text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else repr(value)
    if hasattr(value, "tolist"):
        return printable(value.tolist())
    if isinstance(value, (list, tuple)):
        return [printable(item) for item in value]
    if isinstance(value, dict):
        return {str(key): printable(item) for key, item in value.items()}
    return brief(value, 200)


@dataclass
class _Live:
    """An environment in play. A closed one is over for good."""

    env: gym.Env
    node: Node
    begun: bool = False
    over: bool = False


@dataclass
class Run:
    """Executes one program. `answers` holds (operation, history, answer) of all that is to be compared."""

    oracle: Oracle
    program: Program
    comparison: Comparison
    live: dict[str, _Live] = field(default_factory=dict)
    snapshots: dict[str, tuple[Snapshot, Node, bool]] = field(default_factory=dict)
    answers: list[tuple[int, Node, dict[str, Any]]] = field(default_factory=list)

    def failure(self) -> Failure | None:
        """Runs the program and compares. Raises what the environment raises in plain stepping."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for index, op in enumerate(self.program):
                if not self.operate(index, op, undo):
                    break
        return self.compare()

    def compare(self) -> Failure | None:
        self.oracle.fill(node for _, node, _ in self.answers)
        for index, node, answer in self.answers:
            different = self._compare(node, answer)
            if different:
                return Failure(list(self.program), index, node, different)
        return None

    def _compare(self, node: Node, answer: dict[str, Any]) -> Difference | None:
        if "raised" in answer:
            return Difference(RAISED, None, answer["raised"])
        if node.answer is None:  # the oracle's episode ended earlier, at a step that was not compared
            return Difference(("terminated or truncated earlier",), True, False)
        return self.comparison.difference({key: node.answer.get(key) for key in answer}, answer)

    def operate(self, index: int, op: Op, undo: contextlib.ExitStack) -> bool:
        """Carries out one operation; False where it raised, after which the program cannot go on."""
        live = self.live.get(op.env)
        try:
            if op.kind == "make":
                self._drop(live)
                self.live[op.env] = _Live(self.oracle.make(), self.oracle.root)
            elif op.kind == "call":
                undoing = op.value()
                if callable(undoing):
                    undo.callback(undoing)
            elif op.kind == "close":
                self._drop(self.live.pop(op.env, None))
            elif live is not None:
                self._drive(index, op, live)
        except Exception as error:
            node = live.node if live else self.oracle.root
            if op.kind == "event":
                node = node.child(op.value)
            self.answers.append(
                (index, node, {"raised": f"{type(error).__name__}: {brief(str(error), 300)}"})
            )
            return False
        return True

    def _drive(self, index: int, op: Op, live: _Live) -> None:
        if op.kind == "event":
            if not _possible(op.value, live):
                return
            answer = perform(live.env, op.value, self.comparison)
            live.node = live.node.child(op.value)
            live.begun, live.over = True, bool(answer.get("terminated") or answer.get("truncated"))
            if op.checked:
                self.answers.append((index, live.node, answer))
        elif op.kind == "snapshot" and live.begun:
            self.snapshots[op.value] = (live.env.snapshot(), live.node, live.over)  # type: ignore[attr-defined]
        elif op.kind == "restore" and op.value in self.snapshots:
            snapshot, live.node, live.over = self.snapshots[op.value]
            observation, info = live.env.restore(snapshot)  # type: ignore[attr-defined]
            live.begun = True
            if op.checked:
                answer = self.comparison.answer(observation=observation, info=info)
                self.answers.append((index, live.node, answer))

    def _drop(self, live: _Live | None) -> None:
        if live is not None:
            live.env.close()

    def close(self) -> None:
        """Closes all snapshots and environments."""
        for snapshot, _, _ in self.snapshots.values():
            snapshot.close()
        for live in self.live.values():
            live.env.close()
