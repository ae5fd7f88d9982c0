"""Environments by id and configuration, and their tasks."""

from __future__ import annotations

import gymnasium as gym
import pytest

from bpo_envs.webshop.compact import CompactView
from bpo_train.collect.environment import (
    EnvironmentOptions,
    Task,
    Tasks,
    load_object,
    make_environment,
    tasks_of,
)
from parrot import Parrot
from rollouts import COMPACT, shop
from wrappers import SnapshotEnv


def layers(env: gym.Env) -> list[type]:
    found = []
    while isinstance(env, gym.Wrapper):
        found.append(type(env))
        env = env.env
    return found


# Making


def test_snapshots_are_taken_of_the_whole_stack_once():
    found = layers(make_environment(shop()))
    assert found[:2] == [SnapshotEnv, CompactView]
    assert found.count(SnapshotEnv) == 1


def test_without_wrappers_the_ids_own_snapshot_layer_stays():
    found = layers(make_environment(shop(compact=False)))
    assert found[0] is SnapshotEnv
    assert found.count(SnapshotEnv) == 1


def test_an_environment_without_a_snapshot_layer_gets_one():
    gym.register("test/Parrot-v0", entry_point=Parrot)
    try:
        assert layers(make_environment(EnvironmentOptions("test/Parrot-v0")))[0] is SnapshotEnv
    finally:
        gym.registry.pop("test/Parrot-v0")


def test_wrappers_stand_in_order_innermost_first():
    path = "gymnasium.wrappers:RecordEpisodeStatistics"
    options = EnvironmentOptions("bpo/WebShop-v0", {}, (COMPACT, path))
    assert layers(make_environment(options))[1:3] == [gym.wrappers.RecordEpisodeStatistics, CompactView]


def test_the_step_limit_is_the_ids_own_unless_given():
    assert make_environment(shop(steps=None)).spec.max_episode_steps == 50
    assert make_environment(shop(steps=7)).spec.max_episode_steps == 7


def test_overrides_win():
    env = make_environment(shop(split="train"), split="dev")
    assert env.unwrapped.split == "dev"


def test_a_module_can_be_named_with_the_id():
    assert make_environment(EnvironmentOptions("bpo_envs:bpo/WebShop-v0")).spec.id == "bpo/WebShop-v0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (EnvironmentOptions("bpo/Nowhere-v0"), "cannot make 'bpo/Nowhere-v0'"),
        (EnvironmentOptions("no_such_module:bpo/WebShop-v0"), "no_such_module"),
        (EnvironmentOptions("bpo/WebShop-v0", {"colour": "red"}), "colour"),
        (EnvironmentOptions("bpo/WebShop-v0", {"split": "exam"}), "split"),
        (EnvironmentOptions("CartPole-v1", {}, (COMPACT,)), "CompactView shows bpo/WebShop-v0"),
        (EnvironmentOptions("bpo/WebShop-v0", {}, ("CompactView",)), "expected 'package.module:name'"),
        (EnvironmentOptions("bpo/WebShop-v0", {}, ("bpo_envs.webshop.compact:Nothing",)), "cannot import"),
    ],
)
def test_what_cannot_be_made_is_a_value_error_that_says_why(options, message):
    with pytest.raises(ValueError, match=message):
        make_environment(options)


def test_objects_are_loaded_by_import_path():
    assert load_object(COMPACT) is CompactView
    with pytest.raises(ValueError, match="cannot import 'no_such_module:X'"):
        load_object("no_such_module:X")


# Tasks


def test_a_panel_gives_its_tasks_in_order():
    env = make_environment(shop())
    found = tasks_of(env)
    panel = env.get_wrapper_attr("task_panel")
    assert [task.id for task in found.tasks] == list(panel.task_ids)
    assert found.digest == panel.digest
    for task in (found.tasks[0], found.tasks[17]):
        _, info = env.reset(**task.reset_arguments(seed=0))
        assert info["task_id"] == task.id


def test_an_environment_without_a_panel_has_its_seeds():
    found = tasks_of(SnapshotEnv(Parrot()), seeds=3)
    assert found.tasks[2] == Task(2, "seed-2", seeded=True)
    assert found.tasks[2].reset_arguments(seed=7) == {"seed": 2}  # the seed is the task
    assert len(found) == 3
    assert found.digest == ""


TEN = Tasks(tuple(Task(i, str(i)) for i in range(10)), "")


def test_training_goes_round_the_tasks_in_shuffled_epochs():
    for epoch in range(3):
        seen = [TEN.at(10 * epoch + i, seed=0).index for i in range(10)]
        assert sorted(seen) == list(range(10))
    assert [TEN.at(i, 0).index for i in range(10)] != [TEN.at(10 + i, 0).index for i in range(10)]


def test_the_order_depends_on_the_seed_and_the_cursor_alone():
    assert [TEN.at(i, 3).index for i in (7, 2, 12)] == [TEN.at(i, 3).index for i in (7, 2, 12)]
    assert [TEN.at(i, 3).index for i in range(10)] != [TEN.at(i, 4).index for i in range(10)]
