"""Exact values, visits and gradients, against numbers worked out by hand and against plain enumeration."""

from __future__ import annotations

import math
import random
from fractions import Fraction as F

import pytest

from bpo_envs.toy.exact import episodes, evaluate, optimal, policy_gradient, reach, uniform
from bpo_envs.toy.families import make_family
from bpo_envs.toy.mdp import from_data

# s --a--> t or u by halves; t pays 1 by a and 0 by b; u pays 1/2 by a; s --b--> the end, 1/3 at once
HAND = from_data(
    {
        "start": "s",
        "transitions": {
            "s": {"a": [["1/2", "t", 0], ["1/2", "u", "1/4"]], "b": [[1, "end", "1/3"]]},
            "t": {"a": [[1, "end", 1]], "b": [[1, "end", 0]]},
            "u": {"a": [[1, "end", "1/2"]]},
        },
    }
)
POLICY = {"s": {"a": F(3, 4), "b": F(1, 4)}, "t": {"a": F(2, 3), "b": F(1, 3)}, "u": {"a": F(1)}}
PROCESSES = {
    "hand": HAND,
    "tree": make_family("tree", 4, seed=1),
    "two tokens": make_family("tree", 3, seed=2, tokens=2),
    "layered": make_family("layered", 5, seed=1),
    "early": make_family("early", 5, seed=4),
    "loop": from_data(
        {"start": "x", "transitions": {"x": {"a": [["1/3", "x", 1], ["2/3", "y", 0]], "b": [[1, "x", 0]]}}}, 4
    ),
}
each_process = pytest.mark.parametrize("mdp", PROCESSES.values(), ids=PROCESSES)
GAMMA = F(3, 4)


def random_policy(mdp, seed=0):
    rng = random.Random(seed)
    policy = {}
    for state, actions in mdp.transitions.items():
        parts = [rng.randint(1, 5) for _ in actions]
        policy[state] = {action: F(part, sum(parts)) for action, part in zip(actions, parts)}
    return policy


def discounted(steps, gamma):
    return sum((gamma**i * reward for i, (_, _, reward) in enumerate(steps)), F(0))


def test_values_worked_out_by_hand():
    values = evaluate(HAND, POLICY, GAMMA)
    assert values.v["t"] == F(2, 3)
    assert values.v["u"] == F(1, 2)
    assert values.q["s"]["a"] == F(1, 2) * (GAMMA * F(2, 3)) + F(1, 2) * (F(1, 4) + GAMMA * F(1, 2))  # 9/16
    assert values.v["s"] == F(3, 4) * F(9, 16) + F(1, 4) * F(1, 3)
    assert values.v["end"] == 0 and "end" not in values.q


def test_an_optimal_policy_worked_out_by_hand():
    policy, values = optimal(HAND)
    assert policy["t"] == {"a": 1, "b": 0}
    assert policy["s"] == {"a": 1, "b": 0}
    assert values.v["s"] == F(1, 2) * 1 + F(1, 2) * F(3, 4)  # 7/8 against 1/3
    assert optimal(HAND, gamma=F(1, 10))[0]["s"] == {"a": 0, "b": 1}  # 1/5 against 1/3


@each_process
def test_values_are_the_mean_return_of_all_episodes(mdp):
    policy = random_policy(mdp)
    values = evaluate(mdp, policy, GAMMA)
    for state in mdp.order[:6]:
        listed = list(episodes(mdp, policy, state))
        assert sum(p for _, p in listed) == 1
        assert sum(p * discounted(steps, GAMMA) for steps, p in listed) == values.v[state]


@each_process
def test_visits_are_the_share_of_episodes_that_come_by(mdp):
    policy = random_policy(mdp, 1)
    found = dict.fromkeys(mdp.transitions, F(0))
    for steps, probability in episodes(mdp, policy):
        for state, _, _ in steps:
            found[state] += probability
    visits = reach(mdp, policy)
    assert found == {state: visits.get(state, 0) for state in mdp.transitions}
    assert sum(p for state, p in visits.items() if state not in mdp.transitions) == 1  # all episodes end


@each_process
def test_no_policy_is_better_than_the_optimal_one(mdp):
    policy, best = optimal(mdp, GAMMA)
    assert evaluate(mdp, policy, GAMMA) == best
    for seed in range(5):
        other = evaluate(mdp, random_policy(mdp, seed), GAMMA)
        assert all(best.v[state] >= other.v[state] for state in mdp.order)


@each_process
def test_the_gradient_is_the_mean_of_scores_times_returns_to_go(mdp):
    policy = random_policy(mdp, 2)
    total = {key: F(0) for key in policy_gradient(mdp, policy, GAMMA)}
    for steps, probability in episodes(mdp, policy):
        for t, (state, taken, _) in enumerate(steps):
            to_go = discounted(steps[t:], GAMMA)
            for action, p in policy[state].items():
                total[state, action] += probability * to_go * ((action == taken) - p)
    assert policy_gradient(mdp, policy, GAMMA) == total


def test_the_gradient_is_the_derivative_of_the_value():
    mdp, step = PROCESSES["layered"], 1e-5
    policy = {s: {a: float(p) for a, p in law.items()} for s, law in random_policy(mdp).items()}
    found = policy_gradient(mdp, policy)
    for state, action in list(found)[:12]:
        values = []
        for sign in (1, -1):
            weights = {a: p * math.exp(sign * step * (a == action)) for a, p in policy[state].items()}
            moved = {a: w / sum(weights.values()) for a, w in weights.items()}
            values.append(evaluate(mdp, {**policy, state: moved}).v[mdp.start])
        assert found[state, action] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-8)


def test_the_uniform_policy():
    assert uniform(HAND)["s"] == {"a": F(1, 2), "b": F(1, 2)}


@pytest.mark.parametrize("policy", [{}, {**POLICY, "t": {"c": F(1)}}])
def test_a_policy_of_another_process_is_refused(policy):
    with pytest.raises(ValueError, match="expected probabilities of"):
        evaluate(HAND, policy)
