"""The recipes that ship for the toy games: they fit their environments, and what they promise comes true."""

from __future__ import annotations

import random

import pytest

from bpo_train.collect.environment import load_object, make_environment, tasks_of
from bpo_train.config import parse

RECIPES = ("bpo/KeyCorridor-v0", "bpo/FrozenLakeText-v0")


def configured(env_id, *more):
    return parse(["--env", env_id, "--from-scratch", *more], "test")


@pytest.mark.parametrize("env_id", RECIPES)
def test_the_recipe_of_an_id_is_found_and_its_experts_play_better_than_chance(env_id):
    config = configured(env_id)
    options, make_expert = config.environment, load_object(config.environment.expert)
    env = make_environment(options.options(options.train_split))
    won = []
    for stage in ({"right": 0.0}, *(stage.expert for stage in config.imitation.curriculum())):
        expert, rng = make_expert(**{**options.expert_kwargs, **stage}), random.Random(0)
        won.append(0)
        for index in range(100):
            _, info = env.reset(options={"index": index})
            over = False
            while not over:
                *_, terminated, truncated, info = env.step(expert(env, rng))
                over = terminated or truncated
            won[-1] += info["won"]
    chance, sure, erring = won
    assert sure > erring > chance + 10
    assert sure > 85
    assert len(tasks_of(make_environment(options.options(options.eval_split)))) >= config.run.eval_tasks


@pytest.mark.full
@pytest.mark.parametrize(("env_id", "gain"), [("bpo/KeyCorridor-v0", 0.4), ("bpo/FrozenLakeText-v0", 0.25)])
def test_training_from_nothing_learns(env_id, gain, tmp_path):
    """Measured gains in sampled success: 0.6 (key corridor) and 0.45 (lakes), each over several seeds."""
    from bpo_train.trainer import Trainer

    summary = Trainer(configured(env_id, "--output", str(tmp_path / "run"))).run()
    assert summary["difference"]["mean"] > gain
