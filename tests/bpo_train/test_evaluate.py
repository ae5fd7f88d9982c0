"""Evaluation: common random numbers, what a summary holds, and intervals by hand."""

from __future__ import annotations

import json
import math
import random

import pytest

from bpo_envs.webshop.expert import NoisyExpert
from bpo_train.collect.collector import GrowthOptions
from bpo_train.collect.environment import make_environment
from bpo_train.engine import Sampling
from bpo_train.engine.hf import HFEngine
from bpo_train.evaluate import (
    EVALUATION,
    Evaluation,
    Outcomes,
    evaluate,
    mean_interval,
    paired_difference,
    play,
    play_actor,
)
from bpo_train.policy import FormatOptions, make_format
from bpo_train.trainer import TRAINING
from rollouts import FORMAT, SAMPLING, TOKENIZER, ScriptedEngine, first_tasks, pool_of, shop
from tiny_models import tiny_model

SHOP = shop()
GROWTH = GrowthOptions(100_000)


@pytest.fixture(scope="module")
def pool():
    made = pool_of(SHOP)
    yield made
    made.close()


@pytest.fixture(scope="module")
def tasks():
    return first_tasks(SHOP, 6)


def keys(pool, tasks, seed=0, script=None) -> list[tuple[int, ...]]:
    engine = ScriptedEngine(script) if script else ScriptedEngine()
    play(engine, pool, FORMAT, SAMPLING, GROWTH, tasks, seed)
    return [request.key for request, _ in engine.asked]


# Episodes


def test_one_episode_a_task_in_the_order_of_the_tasks(pool, tasks):
    outcomes = play(ScriptedEngine(), pool, FORMAT, SAMPLING, GROWTH, tasks, 0)
    assert len(outcomes.won) == len(outcomes.score) == len(outcomes.decisions) == 6
    backwards = play(ScriptedEngine(lambda t, k: "buy"), pool, FORMAT, SAMPLING, GROWTH, tasks[::-1], 0)
    assert backwards.decisions == (6,) * 6  # nothing to buy on the search page: the step limit


def test_random_numbers_belong_to_the_task_and_the_decision_whatever_the_policy(pool, tasks):
    for script in (None, lambda text, key: "frobnicate"):
        asked = keys(pool, tasks, 5, script)
        depths = [max(key[4] for key in asked if key[2] == number) for number in range(len(tasks))]
        assert set(asked) == {
            (EVALUATION, 5, number, 0, depth)
            for number, last in enumerate(depths)
            for depth in range(last + 1)
        }


def test_evaluation_never_shares_a_stream_with_training():
    assert EVALUATION != TRAINING


def test_another_seed_draws_other_numbers(pool, tasks):
    assert not set(keys(pool, tasks, 0)) & set(keys(pool, tasks, 1))


def test_an_evaluation_can_be_repeated(pool, tasks):
    form = make_format(TOKENIZER, FormatOptions(max_observation_tokens=60))
    engine = HFEngine(tiny_model(vocabulary=len(TOKENIZER), window=4096))
    sampling = Sampling(form.stop_ids, 8)
    one, other = (evaluate(engine, pool, form, sampling, GrowthOptions(4096), tasks, 3) for _ in range(2))
    assert one == other
    greedy = evaluate(engine, pool, form, sampling, GrowthOptions(4096), tasks, 4).greedy
    assert greedy == one.greedy  # draws nothing


def test_a_script_plays_the_same_tasks(tasks):
    env, rng = make_environment(SHOP), random.Random(0)
    outcomes = play_actor(env, lambda env, text, info: NoisyExpert()(env, rng), tasks)
    assert outcomes.success > 0.8
    assert all(1 <= steps <= 6 for steps in outcomes.decisions)


# Summaries


FOUND = Evaluation(
    Outcomes((True, False, False, True), (1.0, 0.5, 0.0, 1.0), (3, 4, 6, 3)),
    Outcomes((True, True, False, True), (1.0, 1.0, 0.25, 1.0), (3, 3, 6, 3)),
)


def test_a_summary_is_of_sampled_episodes_with_greedy_success_beside_it():
    assert FOUND.summary() == {"success": 0.5, "greedy_success": 0.75, "score": 0.625, "n": 4}


def test_outcomes_survive_json():
    assert Evaluation.from_plain(json.loads(json.dumps(FOUND.to_plain()))) == FOUND


# Intervals


def test_a_paired_difference_by_hand():
    # differences 1, 1, 0, -1: mean 1/4, variance (9/16 + 9/16 + 1/16 + 25/16) / 3 = 11/12
    half = 1.96 * math.sqrt(11 / 12 / 4)
    assert paired_difference([0, 0, 1, 1], [1, 1, 1, 0]) == {
        "mean": 0.25,
        "low": pytest.approx(0.25 - half),
        "high": pytest.approx(0.25 + half),
    }


def test_pairing_takes_the_tasks_own_difficulty_out():
    before = [float(i % 2) for i in range(100)]
    after = [value + 0.1 for value in before]
    paired = paired_difference(before, after)
    assert paired["high"] - paired["low"] < 1e-6
    unpaired = mean_interval(after)
    assert unpaired["high"] - unpaired["low"] > 0.1


def test_outcomes_may_be_truth_values():
    assert paired_difference((True, False), (True, True))["mean"] == 0.5


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [([1, 0], [1], "given 2 and 1"), ([1], [1], "at least 2"), ([], [], "at least 2")],
)
def test_what_has_no_interval_is_refused(before, after, message):
    with pytest.raises(ValueError, match=message):
        paired_difference(before, after)
