"""A small healthy environment of which the sick ones differ in one point each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

PICK, EAT, WALK, WAIT = range(4)


class Orchard(gym.Env):
    """Walk from tree to tree, pick apples of random weight, eat them. Four apples or no strength end it."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float64)
        self.tree, self.strength, self.apples, self.clock = 0, 0.0, [], 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple:
        super().reset(seed=seed)
        self.tree = int(self.np_random.integers(6))
        self.strength, self.apples, self.clock = 10.0, [], 0
        return self.observe(), self.tell()

    def step(self, action: int) -> tuple:
        self.clock += 1
        if action == PICK and self.np_random.random() < 0.6:
            self.apples.append(float(self.np_random.normal(1.0, 0.2)))
        elif action == EAT and self.apples:
            self.strength += self.apples.pop()
        elif action == WALK:
            self.tree = (self.tree + int(self.np_random.integers(1, 3))) % 6
        self.strength -= 0.4
        return self.observe(), self.worth(), self.done(), False, self.tell()

    def worth(self) -> float:
        return sum(self.apples) * (1 + self.tree / 10)

    def done(self) -> bool:
        return len(self.apples) >= 4 or self.strength <= 0

    def observe(self) -> np.ndarray:
        return np.array([self.tree, self.strength, sum(self.apples), self.clock])

    def tell(self) -> dict[str, Any]:
        return {"apples": list(self.apples)}

    def get_state(self) -> Any:
        return {name: getattr(self, name) for name in ("tree", "strength", "apples", "clock")}

    def set_state(self, state: Any) -> Any:
        if not isinstance(state["apples"], list) or not isinstance(state["tree"], int):
            raise ValueError(f"no state of an orchard: {state!r}")
        for name in ("tree", "strength", "apples", "clock"):
            setattr(self, name, state[name])


class Text(Orchard):
    """The orchard by text, with the actions that make sense at the moment."""

    set_state_returns_observation = True
    words = ("pick", "eat", "walk", "wait")

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Text(10)
        self.observation_space = spaces.Text(200)

    def step(self, action: str) -> tuple:
        return super().step(self.words.index(action))

    def observe(self) -> str:
        return f"Tree {self.tree}. You carry {len(self.apples)} apples and feel {self.strength:.1f}."

    def tell(self) -> dict[str, Any]:
        words = ["pick", "walk", "wait"] + (["eat"] if self.apples else [])
        return {**super().tell(), "admissible_actions": words}

    def set_state(self, state: Any) -> tuple:
        super().set_state(state)
        return self.observe(), self.tell()


class Gusty(Orchard):
    """Wind from the machine's own entropy: random by intent, and declared so."""

    nondeterministic = True

    def __init__(self) -> None:
        super().__init__()
        self.wind = np.random.default_rng()

    def step(self, action: int) -> tuple:
        self.strength += float(self.wind.normal(0, 0.5))
        return super().step(action)


Make = Callable[[], gym.Env]
