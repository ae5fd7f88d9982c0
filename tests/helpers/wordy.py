"""A reward that no two sampled actions share: it gives credit to a policy that never wins."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class WordyReward(gym.Wrapper):
    """Pays for every different character of an action, beside what the environment pays."""

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) + len(set(action)) / 100, terminated, truncated, info
