"""What an environment answers when nobody goes back: the measure of every exact check.

A history is all that an instance lived through since it was made: resets and steps, in order. Histories form
a tree, and a node keeps the answer to its last event. The oracle fills a node by making a new instance and
playing the history from its beginning, without a snapshot anywhere. So "as if nothing had happened" is
literal, and holds for wrappers too that remember something across episodes.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from .. import codec
from ..errors import CodecError
from .compare import Comparison, capture

now = time.perf_counter

Policy = Callable[[Any, dict[str, Any], gym.Env], Any]
"""(observation, info, env) -> action."""


@dataclass(frozen=True)
class Event:
    """A reset ("reset", with seed and options) or a step ("step", with its action)."""

    kind: str
    value: Any

    def key(self) -> Any:
        try:
            return self.kind, codec.encode(self.value)
        except CodecError:
            return self.kind, repr(capture(self.value))


def reset(seed: int | None, options: dict[str, Any] | None = None) -> Event:
    return Event("reset", (seed, options))


def step(action: Any) -> Event:
    return Event("step", action)


@dataclass(eq=False)
class Node:
    """A history: its parent's, and one event more. `answer` is None until the oracle has played it."""

    parent: Node | None = None
    event: Event | None = None
    depth: int = 0
    children: dict[Any, Node] = field(default_factory=dict)
    answer: dict[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Whether the episode has ended here."""
        answer = self.answer or {}
        return bool(answer.get("terminated") or answer.get("truncated"))

    def child(self, event: Event) -> Node:
        key = event.key()
        if key not in self.children:
            self.children[key] = Node(self, event, self.depth + 1)
        return self.children[key]

    def path(self) -> list[Node]:
        """The nodes from the first event to this one."""
        nodes: list[Node] = []
        node: Node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def events(self) -> list[Event]:
        return [node.event for node in self.path() if node.event is not None]

    def steps_in_episode(self) -> int:
        """Steps since the last reset."""
        count, node = 0, self
        while node.event is not None and node.event.kind == "step" and node.parent is not None:
            count, node = count + 1, node.parent
        return count


def perform(env: gym.Env, event: Event, comparison: Comparison) -> dict[str, Any]:
    """Lets `env` live through one event; returns a copy of its answer."""
    return comparison.answer(**_live(env, event))


def _live(env: gym.Env, event: Event) -> dict[str, Any]:
    value = copy.deepcopy(event.value)  # an environment that changes its argument changes only its own
    if event.kind == "reset":
        seed, options = value
        observation, info = env.reset(seed=seed, options=options)
        return {"observation": observation, "info": info}
    observation, reward, terminated, truncated, info = env.step(value)
    return {
        "observation": observation,
        "reward": reward,
        "terminated": terminated,
        "truncated": truncated,
        "info": info,
    }


@dataclass
class Oracle:
    """Plays histories on new instances that `make` gives, and keeps their answers."""

    make: Callable[[], gym.Env]
    comparison: Comparison
    root: Node = field(default_factory=Node)

    def fill(self, nodes: Iterable[Node]) -> None:
        """Gives each node its answer. A node that lies beyond the end of an episode keeps None."""
        for node in sorted(nodes, key=lambda node: -node.depth):
            if node.answer is None:
                self._play(node.path())

    def _play(self, path: Sequence[Node]) -> None:
        env = self.make()
        try:
            for node in path:
                if node.parent is not None and node.parent.over and node.event and node.event.kind == "step":
                    return
                assert node.event is not None
                answer = perform(env, node.event, self.comparison)
                if node.answer is None:
                    node.answer = answer
        finally:
            env.close()

    def record(
        self, events: Sequence[Event], choose: Policy, max_steps: int, until: float, least: int = 0
    ) -> Node:
        """Plays `events`, then lets `choose` act until the episode ends, `max_steps` or the time `until`.

        least: steps that are made though the time is up. Returns the last node reached.
        """
        env = self.make()
        try:
            node, live = self.root, {}
            for event in events:
                node, live = node.child(event), _live(env, event)
                node.answer = self.comparison.answer(**live)
            for number in range(max_steps):
                if node.over or (now() > until and number >= least):
                    break
                event = step(choose(live["observation"], live["info"], env))
                node, live = node.child(event), _live(env, event)
                node.answer = self.comparison.answer(**live)
            return node
        finally:
            env.close()


@dataclass
class RandomPolicy:
    """Random admissible actions: from info["admissible_actions"], under info["action_mask"], or the space.

    persistence: probability of taking the last action again, which leads farther than a random walk does.
    """

    seed: int
    persistence: float = 0.0
    _last: Any = None
    _seeded: bool = False

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def __call__(self, observation: Any, info: dict[str, Any], env: gym.Env) -> Any:
        if not self._seeded:
            env.action_space.seed(self.seed)
            self._seeded = True
        again = self._last is not None and self._chance.random() < self.persistence
        admissible = info.get("admissible_actions")
        if admissible is not None and len(admissible):
            ordered = (
                list(admissible) if isinstance(admissible, (list, tuple)) else sorted(admissible, key=repr)
            )
            if not (again and self._last in ordered):
                self._last = self._chance.choice(ordered)
            return self._last
        if isinstance(info.get("action_mask"), (np.ndarray, tuple)):
            self._last = env.action_space.sample(info["action_mask"])
        elif not again:
            self._last = env.action_space.sample()
        return self._last
