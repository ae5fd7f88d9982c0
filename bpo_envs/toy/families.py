"""Families of decision processes: `tree`, `layered` and `early`.

``tree``: a state is what was done so far; the reward comes at the end. Small ones can be summed over, rollout
trees included. ``layered``: every step leads to a state of the next layer, drawn once for all; a quarter of
the last layer's states pay 1. Decisions of all depths matter about equally. ``early``: the same, but the
first action chooses the half of the states in which the episode stays, and the halves pay differently.

The same seed gives the same process; its table is the content that the environment's task digest names.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from bpo_envs.toy.mdp import MDP, Outcome, Transitions

_STATES = 12  # of a layer
_ACTIONS = 3  # in a layered process
_EIGHTHS = 8  # rewards of a tree are 0, 1/8, ..., 1


def tree(horizon: int = 4, seed: int = 0, tokens: int = 1) -> MDP:
    """Two actions (three with `tokens=2`), a random reward in [0, 1] for each history of `horizon`."""
    rng = np.random.default_rng(seed)
    actions = action_names(2 if tokens == 1 else 3, tokens)
    table: dict[str, dict[str, tuple[Outcome, ...]]] = {}
    histories = ["start"]
    for depth in range(horizon):
        last = depth == horizon - 1
        for history in histories:
            table[history] = {
                action: _certain(
                    f"{history} {action}", int(rng.integers(_EIGHTHS + 1)) if last else 0, _EIGHTHS
                )
                for action in actions
            }
        histories = [f"{history} {action}" for history in histories for action in actions]
    return MDP("start", table)


def layered(horizon: int = 10, seed: int = 0, tokens: int = 1) -> MDP:
    """12 states a layer, three actions, transitions and paying states drawn at random."""
    rng = np.random.default_rng(seed)
    after = rng.integers(0, _STATES, (horizon, _STATES, _ACTIONS))
    return _layers(after, rng.random(_STATES) < 0.25, tokens)


def early(horizon: int = 10, seed: int = 0, tokens: int = 1) -> MDP:
    """As `layered`; the first action leads to the upper half (60 % of its states pay) or the lower (15 %)."""
    rng = np.random.default_rng(seed)
    half = _STATES // 2
    after = np.zeros((horizon, _STATES, _ACTIONS), int)
    for step, state, action in np.ndindex(after.shape):
        upper = action == 0 if step == 0 else state >= half
        after[step, state, action] = half * upper + rng.integers(0, half)
    return _layers(after, np.concatenate([rng.random(half) < 0.15, rng.random(half) < 0.6]), tokens)


FAMILIES: dict[str, Callable[[int, int, int], MDP]] = {"tree": tree, "layered": layered, "early": early}
HORIZONS = {"tree": 4, "layered": 10, "early": 10}
_LONGEST = {"tree": 8, "layered": 100, "early": 100}


def make_family(name: str, horizon: int | None = None, seed: int = 0, tokens: int = 1) -> MDP:
    """Make a member of a family.

    Args:
        name: ``"tree"``, ``"layered"`` or ``"early"``.
        horizon: decisions of an episode; None: 4 for a tree, 10 for the others.
        seed: of the tables.
        tokens: 1: actions of one token; 2: some of one, some of two.

    Raises:
        ValueError: an unknown name, or a number out of range.
    """
    if name not in FAMILIES:
        raise ValueError(f"no family of processes is called {name!r}; expected one of {', '.join(FAMILIES)}")
    horizon = HORIZONS[name] if horizon is None else horizon
    for what, given, least, most in (
        ("horizon", horizon, 1, _LONGEST[name]),
        ("seed", seed, 0, 2**63 - 1),
        ("tokens", tokens, 1, 2),
    ):
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not least <= given <= most:
            raise ValueError(f"{what} is {given!r}; for {name!r} expected an integer from {least} to {most}")
    return FAMILIES[name](int(horizon), int(seed), int(tokens))


def action_names(count: int, tokens: int) -> list[str]:
    """Names of `count` actions: a, b, c, ...; with two tokens b, ac, ad, ...: all but one share `a`."""
    letters = string.ascii_lowercase
    return list(letters[:count]) if tokens == 1 else ["b", *(f"a{c}" for c in letters[2 : count + 1])]


def _layers(after: np.ndarray, pays: np.ndarray, tokens: int) -> MDP:
    """`after[t, s, a]`: the state that follows; `pays[s]`: whether the last one does. Starts in state 0."""
    horizon, states, actions = after.shape
    names = action_names(actions, tokens)
    table: Transitions = {
        f"{t}.{s}": {
            name: _certain(f"{t + 1}.{after[t, s, a]}", int(t == horizon - 1 and pays[after[t, s, a]]))
            for a, name in enumerate(names)
        }
        for t in range(horizon)
        for s in range(states)
    }
    return MDP("0.0", table)


def _certain(state: str, reward: int, parts: int = 1) -> tuple[Outcome, ...]:
    return (Outcome(Fraction(1), state, Fraction(reward, parts)),)
