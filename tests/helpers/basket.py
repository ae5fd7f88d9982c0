"""A small random environment with explicit state, for the tests of `wrappers`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from wrappers import SnapshotEnv

TAKE, DROP, PAY = 0, 1, 2


class Basket(gym.Env):
    """Take things of random price, drop the last one, pay. Its set_state leaves the observation to others."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(self, tax: float = 0.0) -> None:
        self.tax = tax
        self.step_limit: int | None = None
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.prices: list[float] = []
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.prices = [float(self.np_random.random()) for _ in range((options or {}).get("things", 1))]
        self.steps = 0
        return self.observe()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if action == TAKE:
            self.prices.append(float(self.np_random.random()))
        elif action == DROP and self.prices:
            self.prices.pop()
        observation, info = self.observe()
        return observation, sum(self.prices) * (1 - self.tax), action == PAY, False, info

    def observe(self) -> tuple[np.ndarray, dict[str, Any]]:
        observation = np.array([len(self.prices), sum(self.prices), self.steps], np.float32)
        return observation, {"prices": list(self.prices)}

    def get_state(self) -> dict[str, Any]:
        return {"prices": self.prices, "steps": self.steps}

    def set_state(self, state: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]] | None:
        if not all(type(price) is float for price in state["prices"]) or type(state["steps"]) is not int:
            raise ValueError(f"no state of a basket: {state}")
        self.prices, self.steps = state["prices"], state["steps"]
        return None


class RebuildingBasket(Basket):
    """Writes its observation anew from its state."""

    set_state_returns_observation = True

    def set_state(self, state: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
        super().set_state(state)
        return self.observe()


class Mute(gym.Env):
    """Repeats itself under a seed, and cannot say what its state is."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.inner = Basket()
        self.action_space, self.observation_space = self.inner.action_space, self.inner.observation_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple:
        super().reset(seed=seed)
        self.inner.np_random = self.np_random
        return self.inner.reset(options=options)

    def step(self, action: int) -> tuple:
        return self.inner.step(action)


def register() -> None:
    for name in ("Basket", "RebuildingBasket"):
        gym.register(
            f"test/{name}-v0",
            entry_point=f"basket:{name}",
            max_episode_steps=10,
            additional_wrappers=(SnapshotEnv.wrapper_spec(),),
        )
    gym.register("test/Mute-v0", entry_point="basket:Mute", max_episode_steps=10)


register()


def same(left: Any, right: Any) -> bool:
    """Equality of observations, infos and traces, arrays included, NaN equal to itself."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (np.ndarray, float)):
        return np.array_equal(left, right, equal_nan=True)
    return bool(left == right)


def run(env: gym.Env, actions: list) -> list[tuple]:
    """What the environment answers to the actions, until the end of its episode."""
    answers = []
    for action in actions:
        answers.append(env.step(action))
        if answers[-1][2] or answers[-1][3]:
            break
    return answers
