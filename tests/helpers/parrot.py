"""A tiny environment of text for the tests of the text space: it says back what it hears."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from bpo_envs.text import Text


class Parrot(gym.Env[Any, str]):
    """Observation: the last action, ``""`` after a reset; with ``nested``, a dictionary that holds it."""

    def __init__(self, max_length: int = 20_000, nested: bool = False) -> None:
        text = Text(max_length)
        self.nested = nested
        self.action_space = Text(1_000_000)
        self.observation_space = gym.spaces.Dict(said=text, size=gym.spaces.Discrete(2)) if nested else text

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(""), {}

    def step(self, action):
        return self._observe(str(action)), 0.0, False, False, {"heard": action}

    def _observe(self, text: str) -> Any:
        return {"said": text, "size": 1} if self.nested else text
