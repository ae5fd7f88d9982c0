"""`bpo/ToyMDP-v0`: the tables, played by text."""

from __future__ import annotations

import random
from fractions import Fraction as F

import gymnasium as gym
import pytest

import bpo_envs  # noqa: F401  (registers the ids)
from bpo_envs.toy.exact import evaluate, uniform
from bpo_envs.toy.game import NoisyExpert
from bpo_envs.toy.process import ToyMDPEnv

THIRDS = {
    "start": "s",
    "transitions": {
        "s": {"a": [["1/3", "t", "1/3"], ["2/3", "u", 0]], "b": [[1, "end", "1/4"]]},
        "t": {"a": [[1, "end", "1/3"]]},
        "u": {"ab": [[1, "end", 0]]},
    },
}


def run(env, actions):
    return [env.step(action) for action in actions]


def test_an_episode_reads_as_documented():
    env = ToyMDPEnv(horizon=2)
    assert env.reset(seed=0)[0] == "start: a b\n"
    assert [step[0] for step in run(env, "ab")] == ["start a: a b\n", "start a b: the end\n"]


@pytest.mark.parametrize("settings", [{}, {"mdp": "layered", "seed": 1}, {"mdp": "early", "tokens": 2}])
def test_rewards_and_states_are_those_of_the_table(settings):
    env, rng = ToyMDPEnv(**settings), random.Random(0)
    for _ in range(10):
        env.reset(seed=0)
        total = F(0)
        while actions := env.admissible_actions():
            state, action = env.moment.state, rng.choice(actions)
            (outcome,) = env.mdp.outcomes(state, action)
            _, reward, terminated, _, info = env.step(action)
            total += outcome.reward
            assert (env.moment.state, reward) == (outcome.state, float(outcome.reward))
            assert (F(env.moment.earned), info["score"]) == (total, float(total))
        assert terminated


def test_sums_of_rewards_are_exact():
    env = ToyMDPEnv(THIRDS)
    for seed in range(20):
        env.reset(seed=seed)
        env.step("a")
        if env.moment.state == "t":
            *_, info = env.step("a")
            assert env.moment.earned == "2/3"
            assert info["won"]
            return
    pytest.fail("state t was never reached in 20 seeds: (2/3)^20 = 0.0003")


def test_won_means_as_good_as_an_optimal_policy_can_expect():
    # by a: 1/3 of 2/3 = 2/9; by b: 1/4
    env = ToyMDPEnv(THIRDS)
    env.reset(seed=0)
    assert env.best_action() == "b"
    *_, info = env.step("b")
    assert (info["won"], info["score"]) == (True, 0.25)


def test_outcomes_come_with_their_probabilities():
    env = ToyMDPEnv(THIRDS)
    env.reset(seed=0)
    count = 0
    for _ in range(3000):
        env.reset()
        env.step("a")
        count += env.moment.state == "t"
    assert abs(count - 1000) < 130  # standard deviation 26


def test_the_mean_score_of_random_play_is_the_exact_value():
    env, rng = gym.make("bpo/ToyMDP-v0", seed=1), random.Random(0)
    exact = float(evaluate(env.unwrapped.mdp, uniform(env.unwrapped.mdp)).v["start"])
    total = 0.0
    for _ in range(2000):
        env.reset()
        while env.unwrapped.admissible_actions():
            _, reward, *_ = env.step(NoisyExpert(0.0)(env, rng))
            total += reward
    assert abs(total / 2000 - exact) < 0.04  # rewards in [0, 1]: standard deviation below 0.012


def test_the_expert_gets_the_optimal_value():
    env = ToyMDPEnv("layered", seed=1)
    env.reset(seed=0)
    while env.admissible_actions():
        *_, info = env.step(env.best_action())
    assert (info["won"], info["score"]) == (True, float(env.optimum[1].v["0.0"]))


def test_the_task_is_its_table():
    digests = {ToyMDPEnv(seed=seed).task_panel.task_digests for seed in (0, 0, 1)}
    assert len(digests) == 2
    data = ToyMDPEnv().mdp.to_data()
    assert ToyMDPEnv(data).task_panel.task_digests == ToyMDPEnv().task_panel.task_digests


def test_the_task_may_be_listed_often():
    env = ToyMDPEnv(copies=2)
    assert env.task_panel.task_ids == ("tree-0", "tree-1")
    assert env.reset(options={"index": 1})[0] == "start: a b\n"


def test_a_process_given_as_data_is_unrolled_by_a_horizon():
    loop = {"start": "x", "transitions": {"x": {"a": [[1, "x", 1]]}}}
    env = ToyMDPEnv(loop, horizon=3)
    env.reset(seed=0)
    assert [step[0] for step in run(env, "aaa")][-1] == "3:x: the end\n"
    with pytest.raises(ValueError, match="give a horizon"):
        ToyMDPEnv(loop)


def test_snapshots_of_another_process_are_refused():
    one, other = (gym.make("bpo/ToyMDP-v0", seed=seed) for seed in (0, 1))
    one.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(Exception, match="another environment or configuration"):
        other.restore(one.snapshot())


@pytest.mark.parametrize(
    "change", [{"state": "nowhere"}, {"earned": "much"}, {"earned": 1}, {"event": "won"}]
)
def test_impossible_moments_are_refused(change):
    env = ToyMDPEnv()
    env.reset(seed=0)
    state = env.get_state()
    with pytest.raises(ValueError):
        env.set_state({**state, "moment": {**state["moment"], **change}})
