"""Configuration: every option as flag and as recipe key, what wins over what, and errors that help."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from bpo_train.config import (
    DEFAULT_RECIPE,
    RECIPES,
    Config,
    from_plain,
    option_names,
    parse,
    recipe_flags,
    recipe_for,
    recipe_path,
)

SHOP = "bpo/WebShop-v0"

OTHER = {
    # tasks
    "env": "bpo_envs:bpo/WebShop-v0",
    "env_kwargs": {"goals": "human", "nested": {"a": [1, None]}},
    "env_wrappers": ["package.module:One", "package.module:Two"],
    "max_episode_steps": 7,
    "train_split": "",
    "eval_split": "dev",
    "expert": "package.module:Expert",
    "expert_kwargs": {"query": 0.5},
    # run
    "model": "somewhere",
    "seed": 3,
    "output": "runs/x",
    "prompts": 5,
    "eval_tasks": 6,
    "eval_every": 7,
    "checkpoint_every": 8,
    "from_scratch": True,
    "dtype": "bfloat16",
    "device": "cuda:1",
    "threads": 2,
    "engine_batch": 9,
    # rollouts
    "temperature": 0.7,
    "max_new_tokens": 33,
    "context_limit": 444,
    "success_weight": 0.25,
    "sentinel": 0.5,
    "top_k": 5,
    "top_p": 0.75,
    "fill": False,
    # method
    "method": "rloo",
    "schedule": "random",
    "returns": 5,
    # schedule
    "branch_points": 3,
    "siblings": 5,
    "spacing": 6,
    "spacing_unit": "context",
    "measure": "mean",
    "exclude_last": True,
    "root": True,
    "quantile": 0.75,
    "decisions": [0, 4, 2],
    "horizon": 12,
    "rate": 0.5,
    "fresh_siblings": True,
    # credit
    "gamma": 0.9,
    "propagation": 0.5,
    "suffix": "none",
    "prefix": "rows",
    "weight": "split",
    "allow_biased": True,
    "scale": "none",
    "eps": 1e-6,
    # learning
    "learning_rate": 1e-5,
    "decay": "constant",
    "warmup": 4,
    "updates": 11,
    "betas": [0.8, 0.9],
    "weight_decay": 0.1,
    "clip": 0.3,
    "kl_weight": 0.01,
    "kl": "k3",
    "epochs": 2,
    "minibatches": 3,
    "normalise": "tokens",
    "loss_length": 100,
    "max_grad_norm": 0.5,
    "mismatch_bound": 3.0,
    "layout": "rows",
    "max_tokens": 1234,
    "logit_chunk": 99,
    # format
    "format": "chat",
    "system": "You shop.\nBe quick.",
    "first_template": "{instruction} -- {observation}",
    "later_template": "- {observation}",
    "action_mark": "-> ",
    "action_end": ";",
    "max_observation_tokens": 55,
    # LoRA
    "lora_rank": 4,
    "lora_alpha": 3.0,
    # the tiny model
    "hidden_size": 64,
    "layers": 3,
    "heads": 8,
    "kv_heads": 4,
    "window": 512,
    "vocabulary": 600,
    "initial_spread": 0.02,
    # imitation
    "tokenizer_episodes": 10,
    "stages": [{"steps": 5, "rows": "copy"}, {"steps": 6, "expert": {"query": 1.0}}],
    # eval
    "policy": "expert",
    "modes": ["greedy"],
    "compare": "earlier.json",
}
"""A value other than the default for every option."""


def flat(config: Config) -> dict[str, object]:
    """Options by name, as JSON-ready data."""
    return {name: value for group in config.to_plain().values() for name, value in group.items()}


def recipe(tmp_path: Path, content: object) -> str:
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said when arguments are refused with exit status 2."""
    with pytest.raises(SystemExit) as stop:
        parse(args if "--recipe" in args else ["--env", "no/Recipe-v0", *args], "prog")
    assert stop.value.code == 2
    said = capsys.readouterr()
    return " ".join((said.out + said.err).replace("│", " ").split())


# Every option


def test_every_option_is_tried_here_and_has_a_name_of_its_own():
    names = option_names()
    assert len(names) == len(set(names))
    assert set(names) == set(OTHER)


def test_the_values_tried_are_not_the_defaults():
    default = flat(Config())
    assert [name for name, value in OTHER.items() if default[name] == value] == []


def test_every_option_is_a_recipe_key(tmp_path):
    assert flat(parse(["--recipe", recipe(tmp_path, OTHER)], "prog")) == OTHER


def test_every_option_is_a_flag(tmp_path):
    flags = recipe_flags(Path(recipe(tmp_path, OTHER)))
    nothing = recipe(tmp_path, {})
    assert flat(parse(["--recipe", nothing, *flags], "prog")) == OTHER


@pytest.mark.parametrize("name", ["fill", "decisions", "env_kwargs", "output", "stages", "max_episode_steps"])
def test_an_option_changes_nothing_else(name, tmp_path):
    found = flat(parse(["--recipe", recipe(tmp_path, {name: OTHER[name]})], "prog"))
    assert found == {**flat(Config()), name: OTHER[name]}


def test_a_configuration_survives_its_manifest():
    config = parse(["--recipe", str(RECIPES / "demo.yaml")], "prog")
    assert from_plain(config.to_plain()) == config


def test_every_option_survives_the_manifest(tmp_path):
    config = parse(["--recipe", recipe(tmp_path, OTHER)], "prog")
    assert from_plain(config.to_plain()) == config


def test_a_manifest_of_another_version_is_refused():
    plain = Config().to_plain()
    plain["run"]["colour"] = "red"
    with pytest.raises(ValueError, match="'colour'"):
        from_plain(plain)


# What wins


def test_flags_win_over_the_recipe_and_the_recipe_over_defaults(tmp_path):
    path = recipe(tmp_path, {"seed": 5, "prompts": 6, "fill": False})
    config = parse(["--recipe", path, "--seed", "7", "--fill"], "prog")
    assert (config.run.seed, config.run.prompts, config.rollout.fill) == (7, 6, True)
    assert config.run.eval_tasks == Config().run.eval_tasks


def test_flags_may_be_joined_by_an_equals_sign(tmp_path):
    path = recipe(tmp_path, {"env": SHOP})
    assert parse([f"--recipe={path}", "--seed=7"], "prog").run.seed == 7


def test_without_arguments_the_demo_runs():
    assert parse([], "prog") == parse(["--recipe", DEFAULT_RECIPE], "prog")


@pytest.mark.parametrize("args", [["--env", SHOP], [f"--env=bpo_envs:{SHOP}"]])
def test_an_environment_picks_its_recipe(args):
    assert recipe_for(SHOP) == RECIPES / "demo.yaml"
    config = parse(args, "prog")
    assert config.run.prompts == parse([], "prog").run.prompts
    assert config.environment.env == args[-1].removeprefix("--env=")


def test_an_environment_without_a_recipe_starts_from_the_defaults():
    assert recipe_for("other/Place-v0") is None
    config = parse(["--env", "other/Place-v0"], "prog")
    assert config == dataclasses.replace(
        Config(), environment=dataclasses.replace(Config().environment, env="other/Place-v0")
    )


def test_a_recipe_is_found_by_name_or_by_path(tmp_path):
    assert recipe_path("demo") == RECIPES / "demo.yaml"
    path = recipe(tmp_path, {})
    assert recipe_path(path) == Path(path)
    with pytest.raises(ValueError, match=r"no recipe 'dmo': expected a \.yaml file or one of demo"):
        recipe_path("dmo")


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_recipes_that_ship_can_be_read(path):
    config = parse(["--recipe", str(path)], "prog")
    assert config.environment.env
    assert not config.imitation.stages or config.imitation.curriculum()


# Errors


def test_an_unknown_recipe_key_names_the_nearest_option(tmp_path):
    with pytest.raises(ValueError, match=r"sets 'learning_rat', .* did you mean 'learning_rate'\?"):
        parse(["--recipe", recipe(tmp_path, {"learning_rat": 1})], "prog")


def test_a_key_like_nothing_known_points_to_the_help(tmp_path):
    with pytest.raises(ValueError, match="see --help"):
        parse(["--recipe", recipe(tmp_path, {"zzzzzz": 1})], "prog")


def test_a_recipe_must_be_a_mapping(tmp_path):
    with pytest.raises(ValueError, match="holds a list; expected `option: value` lines"):
        parse(["--recipe", recipe(tmp_path, [1, 2])], "prog")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--learning-rat", "1"], "--learning-rat"),
        (["--seed", "many"], "--seed"),
        (["--dtype", "float8"], "float8"),
        (["--seed", "-1"], "seed is -1; expected at least 0"),
        (["--prompts", "0"], "prompts is 0"),
        (["--eval-tasks", "1"], "eval_tasks is 1"),
        (["--engine-batch", "0"], "engine_batch is 0"),
        (["--success-weight", "1.5"], "success_weight is 1.5"),
        (["--context-limit", "20"], "no room for a prompt"),
        (["--returns", "1"], "returns is 1"),
        (["--epochs", "0"], "epochs is 0"),
        (["--learning-rate", "0"], "learning_rate is 0.0"),
        (["--kl", "k1"], "kl is 'k1'; expected one of exact, k2, k3"),
        (["--siblings", "1"], "K = 1"),
        (["--measure", "surprisal"], "measure is 'surprisal'"),
        (["--gamma", "0"], "gamma is 0.0"),
        (["--env-kwargs", "[1]"], "expected a JSON dict"),
        (["--env-kwargs", "{"], "--env-kwargs"),
        (["--stages", "{}"], "expected a JSON list"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_values_are_refused_and_named(args, says, capsys):
    assert says in refused(args, capsys)


@pytest.mark.parametrize("value", [{"seed": -1}, {"dtype": "float8"}, {"kl": "k1"}])
def test_bad_values_of_a_recipe_are_refused_too(value, tmp_path, capsys):
    (name,) = value
    assert name in refused(["--recipe", recipe(tmp_path, value)], capsys)


def test_help_explains_every_option(capsys):
    with pytest.raises(SystemExit) as stop:
        parse(["--help"], "prog")
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert [name for name in option_names() if f"--{name.replace('_', '-')}" not in said] == []


def test_a_curriculum_needs_stages_with_known_fields():
    with pytest.raises(ValueError, match="nothing to imitate"):
        Config().imitation.curriculum()
    wrong = dataclasses.replace(Config().imitation, stages=[{"steps": 1, "colour": "red"}])
    with pytest.raises(ValueError, match=r"unknown fields \['colour'\] in a stage"):
        wrong.curriculum()


def test_a_split_is_handed_to_the_environment_unless_it_has_none():
    config = parse(["--env-kwargs", '{"goals": "human"}'], "prog").environment
    assert config.options("dev").kwargs == {"goals": "human", "split": "dev"}
    assert config.options("").kwargs == {"goals": "human"}


def test_a_recipe_may_set_options_for_one_method_only(tmp_path):
    recipe = tmp_path / "own.yaml"
    recipe.write_text("method: bpo\nsiblings: 3\nper_method:\n  grpo: {siblings: 5}\n")
    assert parse(["--recipe", str(recipe)], "test").schedule.siblings == 3
    assert parse(["--recipe", str(recipe), "--method", "grpo"], "test").schedule.siblings == 5
    assert (
        parse(["--recipe", str(recipe), "--method", "grpo", "--siblings", "2"], "test").schedule.siblings == 2
    )
