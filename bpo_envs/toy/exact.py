"""Values, visits, episodes and gradients of an `MDP`, exact.

Everything is a sum over tables in one pass. A policy is a table ``{state: {action: probability}}``. Numbers
stay what they are: with a policy and a discount in fractions the results are fractions, with floats they are
floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bpo_envs.toy.mdp import MDP

Number = Any
"""`Fraction`, int or float: whatever the policy and the discount are written in."""

Policy = Mapping[str, Mapping[str, Number]]
Steps = tuple[tuple[str, str, Fraction], ...]
"""An episode: (state, action, reward) by decision."""


@dataclass(frozen=True)
class Values:
    """Expected discounted returns under a policy.

    Attributes:
        v: V(s) by state; 0 where an episode ends.
        q: Q(s, a) by state and action.
    """

    v: dict[str, Number]
    q: dict[str, dict[str, Number]]


def uniform(mdp: MDP) -> Policy:
    """Every action of a state is equally probable."""
    return {
        state: {action: Fraction(1, len(actions)) for action in actions}
        for state, actions in mdp.transitions.items()
    }


def evaluate(mdp: MDP, policy: Policy, gamma: Number = 1) -> Values:
    """V and Q of a policy, by dynamic programming from the end.

    Raises:
        ValueError: the policy lacks a state, or knows an action that the state has not.
    """
    values = Values({}, {})
    for state in reversed(mdp.order):
        q = _backup(mdp, state, values, gamma)
        if q:
            values.q[state] = q
        values.v[state] = sum((p * q[action] for action, p in law(mdp, policy, state).items()), Fraction(0))
    return values


def optimal(mdp: MDP, gamma: Number = 1) -> tuple[Policy, Values]:
    """An optimal policy (the first of equally good actions) and its values."""
    values = Values({}, {})
    policy: dict[str, dict[str, Number]] = {}
    for state in reversed(mdp.order):
        q = _backup(mdp, state, values, gamma)
        if q:
            values.q[state] = q
            policy[state] = {action: Fraction(action == max(q, key=q.__getitem__)) for action in q}
        values.v[state] = max(q.values(), default=Fraction(0))
    return policy, values


def _backup(mdp: MDP, state: str, values: Values, gamma: Number) -> dict[str, Number]:
    return {
        action: sum(
            (o.probability * (o.reward + gamma * values.v[o.state]) for o in mdp.outcomes(state, action)),
            Fraction(0),
        )
        for action in mdp.actions(state)
    }


def reach(mdp: MDP, policy: Policy) -> dict[str, Number]:
    """The probability that an episode comes by each state; states it cannot come by are left out."""
    found: dict[str, Number] = {mdp.start: Fraction(1)}
    for state in mdp.order:
        if state not in found:
            continue
        for action, p in law(mdp, policy, state).items():
            for outcome in mdp.outcomes(state, action):
                came = found[state] * p * outcome.probability
                if came:
                    found[outcome.state] = found.get(outcome.state, Fraction(0)) + came
    return found


def episodes(mdp: MDP, policy: Policy, state: str | None = None) -> Iterator[tuple[Steps, Number]]:
    """Every possible continuation of a state (the start if none is given), with its probability.

    Their number grows exponentially with the length: meant for some ten thousand.
    """
    state = mdp.start if state is None else state
    if state not in mdp.transitions:
        yield (), Fraction(1)
    for action, p in law(mdp, policy, state).items():
        for outcome in mdp.outcomes(state, action) if p else ():
            for rest, probability in episodes(mdp, policy, outcome.state):
                yield (
                    ((state, action, outcome.reward), *rest),
                    p * outcome.probability * probability,
                )


def policy_gradient(mdp: MDP, policy: Policy, gamma: Number = 1) -> dict[tuple[str, str], Number]:
    """sum_t E[grad log pi(a_t|s_t) Q_gamma(s_t, a_t)] by the logit of each action of each state.

    For a softmax over the actions of a state this is P(come by s) pi(a|s) (Q(s, a) - V(s)); with gamma = 1 it
    is the gradient of V(start).
    """
    values, visits = evaluate(mdp, policy, gamma), reach(mdp, policy)
    return {
        (state, action): visits[state] * p * (values.q[state][action] - values.v[state])
        for state in mdp.order
        if state in visits
        for action, p in law(mdp, policy, state).items()
    }


def law(mdp: MDP, policy: Policy, state: str) -> Mapping[str, Number]:
    """The policy's probabilities in a state; none where an episode ends.

    Raises:
        ValueError: the policy lacks the state, or knows an action that the state has not.
    """
    actions = mdp.actions(state)
    if not actions:
        return {}
    if state not in policy or not policy[state].keys() <= set(actions):
        given = dict(policy[state]) if state in policy else "nothing"
        raise ValueError(f"the policy gives {given} in state {state!r}; expected probabilities of {actions}")
    return policy[state]
