"""``bpo/ToyMDP-v0``: a decision process with known numbers, played by text.

    start: a b
    > a
    start a: a b
    > b
    start a b: the end

The tables are at hand (`ToyMDPEnv.mdp`), so that whatever is estimated from rollouts can be compared with the
exact values of `bpo_envs.toy.exact`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from bpo_envs.toy.exact import Policy, Values, optimal
from bpo_envs.toy.families import make_family
from bpo_envs.toy.game import UNKNOWN, TextGame, copied_panel, require
from bpo_envs.toy.mdp import MDP, Outcome, fraction, from_data

_EVENTS = ("moved", "unknown")


@dataclass(frozen=True)
class Moment:
    """The state, the sum of rewards so far (a fraction as text), and what happened last."""

    state: str
    earned: str
    event: str


class ToyMDPEnv(TextGame[MDP, Moment]):
    """Walk through a decision process. Actions are the names of its actions.

    There is one task, the same in every split: a process is there to be measured, not to be generalised from.
    `score` is the sum of rewards so far; `won`: the episode is over and earned at least what an optimal
    policy can expect.

    Args:
        mdp: a family's name (``"tree"``, ``"layered"``, ``"early"``), or a process as plain data (see
            `bpo_envs.toy.mdp.from_data`).
        horizon: decisions of an episode. A family has its own if None is given; a process given as data is
            unrolled for so many steps, or taken as it is if None.
        seed: of a family's tables.
        tokens: of a family's actions: 1, or 2 for actions of one and of two tokens (characters).
        copies: how often the panel lists the task.
        split: any of the usual names.
        render_mode: None or ``"ansi"``.

    Raises:
        ValueError: an unknown family or setting, or data that describe no process.
    """

    _moment_type = Moment

    def __init__(
        self,
        mdp: str | Mapping[str, Any] = "tree",
        horizon: int | None = None,
        seed: int = 0,
        tokens: int = 1,
        copies: int = 1,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        if isinstance(mdp, str):
            self.mdp, name = make_family(mdp, horizon, seed, tokens), mdp
        else:
            self.mdp, name = from_data(mdp, horizon), "custom"
        panel = copied_panel("toy-mdp", split, name, self.mdp.to_data(), copies)
        super().__init__((self.mdp,) * len(panel), panel, render_mode)

    @cached_property
    def optimum(self) -> tuple[Policy, Values]:
        """An optimal policy and its values, undiscounted."""
        return optimal(self.mdp)

    def instruction(self) -> str:
        return "earn as much as you can"

    def best_action(self) -> str:
        law = self.optimum[0][self.moment.state]
        return max(law, key=law.__getitem__)

    def _begin(self) -> Moment:
        return Moment(self.mdp.start, "0", "moved")

    def _play(self, moment: Moment, action: str) -> tuple[Moment, float]:
        if action not in self.mdp.actions(moment.state):
            return Moment(moment.state, moment.earned, "unknown"), 0.0
        outcome = self._draw(self.mdp.outcomes(moment.state, action))
        earned = Fraction(moment.earned) + outcome.reward
        return Moment(outcome.state, str(earned), "moved"), float(outcome.reward)

    def _draw(self, outcomes: tuple[Outcome, ...]) -> Outcome:
        """One of the outcomes; what is certain consumes no randomness."""
        if len(outcomes) == 1:
            return outcomes[0]
        below = np.cumsum([float(o.probability) for o in outcomes])
        return outcomes[min(int(np.searchsorted(below, self.np_random.random(), "right")), len(outcomes) - 1)]

    def _read(self, moment: Moment) -> str:
        if moment.event == "unknown":
            return UNKNOWN
        return f"{moment.state}: {' '.join(self.mdp.actions(moment.state)) or 'the end'}\n"

    def _choices(self, moment: Moment) -> list[str]:
        return list(self.mdp.actions(moment.state))

    def _score(self, moment: Moment) -> float:
        return float(Fraction(moment.earned))

    def _won(self, moment: Moment) -> bool:
        at_end = not self.mdp.actions(moment.state)
        return at_end and Fraction(moment.earned) >= self.optimum[1].v[self.mdp.start]

    def _check(self, data: dict[str, Any]) -> Moment:
        state, earned, event = data["state"], data["earned"], data["event"]
        known = isinstance(state, str) and state in self._states
        require(data, "state", "a state of the process", known)
        require(data, "earned", "a fraction as text, such as '3/4'", isinstance(earned, str))
        require(data, "event", f"one of {_EVENTS}", event in _EVENTS)
        fits = event == "moved" or bool(self.mdp.actions(state))
        require(data, "event", "'moved' where the episode has ended", fits)
        return Moment(state, str(fraction(earned)), event)

    @cached_property
    def _states(self) -> frozenset[str]:
        return frozenset(self.mdp.order)
