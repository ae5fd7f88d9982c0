"""What else the original's text environment can do, for comparing with work that used it.

`History` puts earlier observations and actions before the current one (upstream's ``num_prev_obs`` and
``num_prev_actions``). `GoalSelection` draws goals as upstream does where no session is named: with a
generator that goes on where the shuffle of the goals left it, and with an index that is off by one, so that
each goal comes with the weight of the one before it: the first never, the last with its own weight besides.

Two more switches concern pages and searches, and are arguments of the environment: ``show_attrs`` and
``special_words``.
"""

from __future__ import annotations

import bisect
import itertools
import random
import string
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from bpo_envs.text import Text
from bpo_envs.webshop.goals import SHUFFLE_SEED, Goal

_SEPARATOR = " [SEP] "


class History(gym.Wrapper[str, str, str, str], gym.utils.RecordConstructorArgs):
    """Shows what went before, oldest first, and then the current observation.

    Args:
        env: an environment with texts as observations and actions.
        num_prev_obs: how many earlier observations are shown, at most.
        num_prev_actions: how many earlier actions, at most; each follows the observation it answered.

    Raises:
        ValueError: a negative number.
    """

    def __init__(self, env: gym.Env[str, str], num_prev_obs: int = 0, num_prev_actions: int = 0) -> None:
        if num_prev_obs < 0 or num_prev_actions < 0:
            raise ValueError(
                f"History was given num_prev_obs={num_prev_obs}, num_prev_actions={num_prev_actions}; "
                "expected numbers >= 0"
            )
        gym.utils.RecordConstructorArgs.__init__(
            self, num_prev_obs=num_prev_obs, num_prev_actions=num_prev_actions
        )
        super().__init__(env)
        self.num_prev_obs = num_prev_obs
        self.num_prev_actions = num_prev_actions
        self._observations: list[str] = []  # newest last, the current one included
        self._actions: list[str] = []
        if isinstance(env.observation_space, Text) and isinstance(env.action_space, Text):
            self.observation_space = Text(
                (1 + num_prev_obs) * (env.observation_space.max_length + len(_SEPARATOR))
                + num_prev_actions * (env.action_space.max_length + len(_SEPARATOR))
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode, with nothing before it."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._observations, self._actions = [observation], []
        return observation, info

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step, and show what went before."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observations = [*self._observations, observation][-self.num_prev_obs - 1 :]
        self._actions = [*self._actions, action][-self.num_prev_actions :] if self.num_prev_actions else []
        return self._shown(), reward, terminated, truncated, info

    def get_state(self) -> dict[str, list[str]]:
        """Return what is remembered, as plain data."""
        return {"observations": list(self._observations), "actions": list(self._actions)}

    def set_state(self, state: dict[str, list[str]]) -> None:
        """Put back what `get_state` returned.

        Raises:
            ValueError: the data are nothing that this wrapper remembers.
        """
        limits = {"observations": self.num_prev_obs + 1, "actions": self.num_prev_actions}
        if not isinstance(state, dict) or set(state) != set(limits):
            raise ValueError(f"the state of History is a dict of {', '.join(limits)}; given: {state!r}")
        for name, limit in limits.items():
            texts = state[name]
            if (
                not isinstance(texts, list)
                or len(texts) > limit
                or not all(isinstance(t, str) for t in texts)
            ):
                raise ValueError(f"state of History: {name} is {texts!r}; expected at most {limit} strings")
        self._observations, self._actions = list(state["observations"]), list(state["actions"])

    def _shown(self) -> str:
        earlier = self._observations[-2::-1]
        newest_first = [self._observations[-1]]
        for action, observation in itertools.zip_longest(self._actions[::-1], earlier):
            newest_first += [text for text in (action, observation) if text is not None]
        return _SEPARATOR.join(reversed(newest_first))


class GoalSelection:
    """Draws goals as upstream does, for ``env.reset(options={"goal_idx": ...})``.

    Upstream's constructor already takes the first draw.

    Args:
        goals: all goals in their order.
        limit: keep that many distinct ones, drawn by weight (upstream's ``limit_goals``).
        keep: keep those for which ``keep(position, goal)`` holds (``filter_goals``), before the limit.

    Raises:
        ValueError: nothing is left to draw.
    """

    def __init__(
        self,
        goals: Sequence[Goal],
        limit: int | None = None,
        keep: Callable[[int, Goal], bool] | None = None,
    ) -> None:
        self._rng = random.Random(SHUFFLE_SEED)
        self._rng.shuffle(list(range(len(goals))))
        kept = [i for i, goal in enumerate(goals) if keep is None or keep(i, goal)]
        if limit is not None and limit < len(kept):
            ends = _ends(goals, kept)
            drawn: dict[int, None] = {}
            while len(drawn) < limit:
                drawn[self._draw(ends)] = None
            kept = [kept[i] for i in drawn]
        if not kept:
            raise ValueError(f"no goal is left of {len(goals)}; choose another limit or filter")
        self.goal_indices = tuple(kept)
        """Positions of the goals to draw from, in the order of all goals."""
        self._weight_ends = _ends(goals, kept)

    def draw(self) -> tuple[str, int]:
        """Return upstream's next session id and the position of its goal."""
        session_id = "".join(self._rng.choices(string.ascii_lowercase, k=10))
        return session_id, self.goal_indices[self._draw(self._weight_ends)]

    def _draw(self, ends: list[float]) -> int:
        return min(bisect.bisect(ends, self._rng.uniform(0, ends[-1])), len(ends) - 2)


def _ends(goals: Sequence[Goal], kept: list[int]) -> list[float]:
    return [0.0, *itertools.accumulate(goals[i].weight for i in kept)]
