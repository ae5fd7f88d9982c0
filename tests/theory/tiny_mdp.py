"""Policies over tokens on decision processes small enough to sum over every episode, in exact fractions.

A process is a tree: a state is the tuple of actions taken so far, an action a string of one-character tokens.
Its table of transitions, values and visits are the product's (`bpo_envs.toy`); what is added here is the
policy, a softmax over the next token at each *node* (state, tokens so far), given by its probabilities. A
pair of node and token is one parameter (a logit). An action is complete where the policy has no node for one
more token, an episode is over where it has none for a first one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product

from bpo_envs.toy import exact
from bpo_envs.toy.mdp import MDP, Outcome

State = tuple[str, ...]
Node = tuple[State, str]
Gradient = dict[tuple[Node, str], Fraction]
"""Derivative by the logit of each token at each node; absent means 0."""


def name(state: State) -> str:
    """What the product's table calls a state."""
    return " ".join(("start", *state))


def history(state_name: str) -> State:
    """The inverse of `name`."""
    return tuple(state_name.split()[1:])


@dataclass(frozen=True)
class TinyMDP:
    """A policy and its rewards.

    Attributes:
        policy: node -> {token: probability}.
        rewards: state after the action -> reward; absent means 0.
    """

    policy: dict[Node, dict[str, Fraction]]
    rewards: dict[State, Fraction]
    cache: dict = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def law(self) -> dict[str, dict[str, Fraction]]:
        """Probabilities of whole actions by the product's name of the state."""
        states = {state for state, prefix in self.policy if not prefix}
        return {name(state): dict(self._extend(state, "", Fraction(1))) for state in states}

    def _extend(self, state: State, prefix: str, probability: Fraction) -> Iterator[tuple[str, Fraction]]:
        if (state, prefix) not in self.policy:
            yield prefix, probability
            return
        for token, p in self.policy[state, prefix].items():
            yield from self._extend(state, prefix + token, probability * p)

    @cached_property
    def table(self) -> MDP:
        """The process itself: every action leads to the history with it at its end."""
        return MDP(
            name(()),
            {
                state: {
                    action: (Outcome(Fraction(1), f"{state} {action}", self.reward(history(state), action)),)
                    for action in actions
                }
                for state, actions in self.law.items()
            },
        )

    def reward(self, state: State, action: str) -> Fraction:
        return self.rewards.get((*state, action), Fraction(0))

    def actions(self, state: State) -> list[tuple[str, Fraction]]:
        """All actions with their probabilities; empty at the end of an episode."""
        return list(self.law.get(name(state), {}).items())

    def entropies(self, state: State, action: str) -> list[float]:
        """Entropy in nats at each token of `action`, known before that token is drawn."""
        laws = [self.policy[state, action[:i]].values() for i in range(len(action))]
        return [-sum(float(p) * math.log(p) for p in law if p) for law in laws]

    def score(self, state: State, action: str) -> Gradient:
        """grad log pi(action | state)."""
        found: Gradient = {}
        for i, drawn in enumerate(action):
            node = (state, action[:i])
            for token, p in self.policy[node].items():
                found[node, token] = (token == drawn) - p
        return found

    def episodes(self, state: State = ()) -> list[tuple[list[tuple[State, str]], Fraction]]:
        """All continuations of `state`, as steps (state, action), with their probabilities."""
        if ("episodes", state) not in self.cache:
            self.cache["episodes", state] = [
                ([(history(at), action) for at, action, _ in steps], p)
                for steps, p in exact.episodes(self.table, self.law, name(state))
            ]
        return self.cache["episodes", state]

    def _values(self, gamma: Fraction) -> exact.Values:
        if ("values", gamma) not in self.cache:
            self.cache["values", gamma] = exact.evaluate(self.table, self.law, gamma)
        return self.cache["values", gamma]

    def q(self, state: State, action: str, gamma: Fraction) -> Fraction:
        """Q_gamma(s, a)."""
        return self._values(gamma).q[name(state)][action]

    def value(self, state: State, gamma: Fraction) -> Fraction:
        """V_gamma(s)."""
        return self._values(gamma).v[name(state)]

    def reach(self) -> dict[State, Fraction]:
        """Probability of coming by each state in which something is decided."""
        visits = exact.reach(self.table, self.law)
        return {history(state): p for state, p in visits.items() if state in self.law}

    def policy_gradient(self, gamma: Fraction, discount_states: bool = False) -> Gradient:
        """sum_t E[grad log pi(a_t|s_t) Q_gamma(s_t, a_t)]; with gamma^t, `discount_states`, grad E[G_0]."""
        return self.gradient(
            {
                (state, action): p
                * q
                * self.q(state, action, gamma)
                * (gamma ** len(state) if discount_states else 1)
                for state, p in self.reach().items()
                for action, q in self.actions(state)
            }
        )

    def gradient(self, credit: dict[tuple[State, str], Fraction]) -> Gradient:
        """sum over pairs of credit(s, a) grad log pi(a | s), without zeros."""
        total: Gradient = {}
        for (state, action), amount in credit.items():
            for parameter, derivative in self.score(state, action).items():
                total[parameter] = total.get(parameter, Fraction(0)) + amount * derivative
        return {parameter: value for parameter, value in total.items() if value}


def at_depth(gradient: Gradient, *depths: int) -> Gradient:
    """The part of a gradient that belongs to decisions at these depths."""
    return {parameter: value for parameter, value in gradient.items() if len(parameter[0][0]) in depths}


def scaled(gradient: Gradient, factor: Fraction) -> Gradient:
    return {parameter: factor * value for parameter, value in gradient.items()}


def distance(one: Gradient, other: Gradient) -> float:
    """Euclidean norm of the difference."""
    return sum(float(one.get(k, 0) - other.get(k, 0)) ** 2 for k in one.keys() | other.keys()) ** 0.5


def norm(gradient: Gradient) -> float:
    return distance(gradient, {})


def binary_mdp(depth: int, first: dict[str, Fraction], rewards: dict[str, Fraction]) -> TinyMDP:
    """Episodes of `depth` one-token actions 0 and 1; `first[h]` is the probability of 1 after history h."""
    policy: dict[Node, dict[str, Fraction]] = {}
    for length in range(depth):
        for history in product("01", repeat=length):
            p = first["".join(history)]
            policy[history, ""] = {"0": 1 - p, "1": p}
    return TinyMDP(policy, {tuple(history): reward for history, reward in rewards.items()})


def selection_example() -> TinyMDP:
    """Three decisions; a backbone that starts with 1 comes by a state of higher entropy than the root's.

    One that starts with 0, the worse action, does not. So top-1 entropy over the finished backbone takes the
    root if and only if the first action was 0. Nats: root 0.611, state "1" 0.693, all others at most 0.325.
    """
    first = {"": Fraction(3, 10), "0": Fraction(1, 20), "1": Fraction(1, 2)}
    first |= {"00": Fraction(1, 20), "01": Fraction(1, 20), "10": Fraction(1, 10), "11": Fraction(1, 10)}
    rewards = {
        "".join(h): Fraction(2 * int(h[0]) + int(h[1]) + int(h[2]), 4) for h in product("01", repeat=3)
    }
    return binary_mdp(3, first, rewards)


def random_mdp(seed: int, depth: int, two_tokens: bool = False, ends_early: bool = False) -> TinyMDP:
    """Random probabilities and dense rewards.

    Args:
        seed: of Python's generator.
        depth: decisions of the longest episode.
        two_tokens: actions are "b", "ac" and "ad": one token or two; else "a" and "b".
        ends_early: after "b" an episode goes on only every other time.
    """
    rng = random.Random(seed)

    def chance() -> Fraction:
        return Fraction(rng.randint(1, 4), 5)

    policy: dict[Node, dict[str, Fraction]] = {}
    rewards: dict[State, Fraction] = {}
    frontier: list[State] = [()]
    while frontier:
        state = frontier.pop()
        p = chance()
        policy[state, ""] = {"a": p, "b": 1 - p}
        if two_tokens:
            q = chance()
            policy[state, "a"] = {"c": q, "d": 1 - q}
        for action in ("ac", "ad", "b") if two_tokens else ("a", "b"):
            after = (*state, action)
            rewards[after] = Fraction(rng.randint(0, 4), 4)
            stops = ends_early and action == "b" and rng.random() < 0.5
            if len(after) < depth and not stops:
                frontier.append(after)
    return TinyMDP(policy, rewards)
