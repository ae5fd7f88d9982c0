"""Decision processes as tables of exact numbers, small enough to sum over.

A process has named states and actions; an action taken in a state has *outcomes*: a probability, the next
state and a reward, all fractions. A state without actions ends the episode. No state can be come back to, so
that values follow from one backward pass and episodes can be listed. A process with cycles becomes one of
these by unrolling it for a number of steps.

An action is text. Where it matters how many tokens it has, every character is one token: ``b`` is an action
of one token, ``ac`` and ``ad`` are two actions that share their first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What an action can lead to."""

    probability: Fraction
    state: str
    reward: Fraction = Fraction(0)


Transitions = Mapping[str, Mapping[str, tuple[Outcome, ...]]]
"""state -> action -> outcomes."""


@dataclass(frozen=True)
class MDP:
    """A finite decision process without cycles.

    Attributes:
        start: the state in which episodes begin.
        transitions: the outcomes of every action in every state that has actions.

    Raises:
        ValueError: the start has no actions, a state has an empty list of them, an action is no plain word,
            probabilities are not positive or do not sum to 1, or a state can be come back to.
    """

    start: str
    transitions: Transitions

    def __post_init__(self) -> None:
        if self.start not in self.transitions:
            raise ValueError(f"the start {self.start!r} has no actions; give it some in `transitions`")
        for state, actions in self.transitions.items():
            if not actions:
                raise ValueError(f"state {state!r} has an empty list of actions; leave out states that end")
            for action, outcomes in actions.items():
                _check_action(state, action)
                _check_outcomes(state, action, outcomes)
        _ = self.order  # a cycle fails here, not at the first use

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All states, those that end an episode too, each before the ones that can follow it."""
        followers = {
            state: {outcome.state for outcomes in actions.values() for outcome in outcomes}
            for state, actions in self.transitions.items()
        }
        try:
            return tuple(reversed(tuple(TopologicalSorter(followers).static_order())))
        except CycleError as error:
            path = " -> ".join(reversed(error.args[1]))
            raise ValueError(
                f"an episode can come back to a state ({path}); give a horizon, which unrolls the process"
            ) from None

    def actions(self, state: str) -> tuple[str, ...]:
        """The actions of a state; none where the episode ends."""
        return tuple(self.transitions.get(state, ()))

    def outcomes(self, state: str, action: str) -> tuple[Outcome, ...]:
        """What an action can lead to."""
        return self.transitions[state][action]

    def to_data(self) -> dict[str, Any]:
        """Return the process as plain data (JSON-ready), fractions as text."""
        return {
            "start": self.start,
            "transitions": {
                state: {
                    action: [[str(o.probability), o.state, str(o.reward)] for o in outcomes]
                    for action, outcomes in actions.items()
                }
                for state, actions in self.transitions.items()
            },
        }


def from_data(data: Any, horizon: int | None = None) -> MDP:
    """Read a process that was written as plain data.

    Args:
        data: ``{"start": state, "transitions": {state: {action: [[probability, next, reward], ...]}}}``.
            Numbers are integers, texts such as ``"1/3"``, or floats, which are read as they are printed.
        horizon: unroll for so many steps: state ``x`` at step 2 is then called ``2:x``.

    Raises:
        ValueError: the data have another form, or describe no process (see `MDP`).
    """
    if not isinstance(data, Mapping) or set(data) != {"start", "transitions"}:
        raise ValueError(f"a process is a dict of 'start' and 'transitions'; given: {_brief(data)}")
    start, given = data["start"], data["transitions"]
    if not isinstance(start, str) or not isinstance(given, Mapping):
        raise ValueError(
            "'start' is a state's name and 'transitions' a dict by state; given: "
            f"{_brief(start)}, {_brief(given)}"
        )
    table = {_name(state): _read_actions(state, actions) for state, actions in given.items()}
    return MDP(start, table) if horizon is None else unroll(start, table, horizon)


def unroll(start: str, transitions: Transitions, horizon: int) -> MDP:
    """Tell states apart by the step at which they are come by, and end the episode after `horizon` steps.

    Raises:
        ValueError: the horizon is no integer above 0.
    """
    if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
        raise ValueError(f"horizon is {horizon!r}; expected a number of steps, at least 1")
    table: dict[str, dict[str, tuple[Outcome, ...]]] = {}
    layer = {start}
    for step in range(horizon):
        deciding = sorted(layer & transitions.keys())
        for state in deciding:
            table[f"{step}:{state}"] = {
                action: tuple(Outcome(o.probability, f"{step + 1}:{o.state}", o.reward) for o in outcomes)
                for action, outcomes in transitions[state].items()
            }
        layer = {o.state for state in deciding for outs in transitions[state].values() for o in outs}
    return MDP(f"0:{start}", table)


def fraction(value: Any) -> Fraction:
    """Read a number exactly; a float as it is printed, so that 0.1 is 1/10.

    Raises:
        ValueError: the value is no finite number.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction)):
            raise ValueError
        return Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"{_brief(value)} is no number; give an integer, a float or a text like '1/3'"
        ) from None


def _read_actions(state: Any, actions: Any) -> dict[str, tuple[Outcome, ...]]:
    if not isinstance(actions, Mapping):
        raise ValueError(f"the actions of state {state!r} are a dict; given: {_brief(actions)}")
    return {action: _read_outcomes(state, action, outcomes) for action, outcomes in actions.items()}


def _read_outcomes(state: Any, action: Any, outcomes: Any) -> tuple[Outcome, ...]:
    where = f"action {action!r} in state {state!r}"
    if not isinstance(outcomes, (list, tuple)) or any(
        not isinstance(one, (list, tuple)) or len(one) != 3 for one in outcomes
    ):
        raise ValueError(
            f"the outcomes of {where} are a list of [probability, next state, reward]; "
            f"given: {_brief(outcomes)}"
        )
    try:
        return tuple(Outcome(fraction(p), _name(after), fraction(reward)) for p, after, reward in outcomes)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _name(state: Any) -> str:
    if not isinstance(state, str) or "\n" in state:
        raise ValueError(f"a state's name is a text of one line; given: {_brief(state)}")
    return state


def _check_action(state: str, action: Any) -> None:
    if not isinstance(action, str) or action.split() != [action]:
        raise ValueError(f"action {action!r} in state {state!r}: expected a word without spaces")


def _check_outcomes(state: str, action: str, outcomes: tuple[Outcome, ...]) -> None:
    probabilities = [outcome.probability for outcome in outcomes]
    if not all(p > 0 for p in probabilities) or sum(probabilities) != 1:
        raise ValueError(
            f"the probabilities of action {action!r} in state {state!r} are "
            f"{[str(p) for p in probabilities]}; expected positive ones that sum to 1 (write thirds as '1/3')"
        )


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
