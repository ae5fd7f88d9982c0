"""The command `eval`: one policy on one split, with intervals, as a table and as JSON."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wrappers import SnapshotEnv

from .collect.collector import GrowthOptions
from .collect.environment import Task, Tasks, load_object, make_environment, tasks_of
from .collect.pool import InProcessPool
from .config import Config
from .engine import Sampling
from .engine.hf import HFEngine
from .evaluate import Actor, Outcomes, mean_interval, paired_difference, play, play_actor
from .policy import load_policy


def examine(config: Config, console: Console) -> dict[str, Any]:
    """Evaluate as configured.

    Returns:
        The result as it is written: what was asked, and for every mode the outcomes by task, with 95 %
        intervals and, where `compare` is given, paired differences.

    Raises:
        ValueError: more tasks than the split has, no expert, or an incomparable `compare`.
    """
    split = config.environment.eval_split
    env = make_environment(config.environment.options(split))
    tasks = tasks_of(env)
    count = config.run.eval_tasks
    if not 2 <= count <= len(tasks):
        raise ValueError(f"eval_tasks is {count}; expected 2 to {len(tasks)}, the tasks of split {split!r}")
    earlier = _read_earlier(config.evaluation.compare, tasks, count)
    chosen = tasks.tasks[:count]
    if config.evaluation.policy == "model":
        env.close()
        outcomes = _model_outcomes(config, chosen)
    else:
        actor = _human(console) if config.evaluation.policy == "human" else _expert(config)
        outcomes = {config.evaluation.policy: play_actor(env, actor, chosen)}
        env.close()
    result = {
        "env": config.environment.env,
        "split": split,
        "panel_digest": tasks.digest,
        "policy": config.run.model if config.evaluation.policy == "model" else config.evaluation.policy,
        "seed": config.run.seed,
        "tasks": [task.id for task in chosen],
        "modes": {mode: _report(found, _counterpart(earlier, mode)) for mode, found in outcomes.items()},
    }
    console.print(_table(result))
    return result


def _model_outcomes(config: Config, tasks: tuple[Task, ...]) -> dict[str, Outcomes]:
    policy = load_policy(config.run.model, config.format, config.run.dtype, config.run.device)
    engine = HFEngine(policy.model, config.run.engine_batch)
    r = config.rollout
    growth = GrowthOptions(min(r.context_limit, engine.window), r.success_weight, r.fill)
    pool = InProcessPool(partial(make_environment, config.environment.options(config.environment.eval_split)))
    sampling = Sampling(policy.format.stop_ids, r.max_new_tokens, r.temperature, top_k=r.top_k, top_p=r.top_p)
    outcomes: dict[str, Outcomes] = {}
    for mode in config.evaluation.modes:
        how = dataclasses.replace(sampling, greedy=mode == "greedy")
        outcomes[mode] = play(engine, pool, policy.format, how, growth, tasks, config.run.seed)
    pool.close()
    return outcomes


def _expert(config: Config) -> Actor:
    if not config.environment.expert:
        raise ValueError("no `expert` is configured for this environment; give --expert package.module:Class")
    expert = load_object(config.environment.expert)(**config.environment.expert_kwargs)
    rng = random.Random(config.run.seed)
    return lambda env, text, info: expert(env, rng)


def _human(console: Console) -> Actor:
    def act(env: SnapshotEnv, text: str, info: Mapping[str, Any]) -> str:
        console.print(text, markup=False, highlight=False)
        for action in info.get("admissible_actions", ())[:20]:
            console.print(f"  {action}", markup=False, highlight=False, style="dim")
        try:
            return input("> ")
        except EOFError as error:
            raise ValueError("the input ended before the episode did; no result was written") from error

    return act


def _read_earlier(path: Path | None, tasks: Tasks, count: int) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        earlier = json.loads(path.read_text())
        digest, names, modes = earlier["panel_digest"], earlier["tasks"], earlier["modes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no result of an earlier eval: {error!r}") from error
    if digest != tasks.digest or names != [task.id for task in tasks.tasks[:count]]:
        raise ValueError(f"{path} was made on other tasks; differences can only be paired on the same ones")
    return modes


def _counterpart(earlier: dict[str, Any], mode: str) -> dict[str, Any] | None:
    """The earlier outcomes to pair with: of the same mode, or else the first that were written."""
    return earlier.get(mode) or next(iter(earlier.values()), None)


def _report(found: Outcomes, earlier: dict[str, Any] | None) -> dict[str, Any]:
    report: dict[str, Any] = {
        "success": mean_interval(found.won),
        "score": mean_interval(found.score),
        "decisions": sum(found.decisions) / len(found.decisions),
        "n": len(found.won),
        "outcomes": dataclasses.asdict(found),
    }
    if earlier is not None:
        before = earlier["outcomes"]
        report["difference"] = {
            "success": paired_difference(before["won"], found.won),
            "score": paired_difference(before["score"], found.score),
        }
    return report


def _table(result: dict[str, Any]) -> Table:
    table = Table(
        title=f"{result['policy']} on {result['env']}, {result['split']}, {len(result['tasks'])} tasks"
    )
    for column in (
        "",
        "success (95 % interval)",
        "score (95 % interval)",
        "decisions",
        "success, paired difference",
    ):
        table.add_column(column)
    for mode, report in result["modes"].items():
        difference = report.get("difference")
        table.add_row(
            mode,
            _interval(report["success"]),
            _interval(report["score"]),
            f"{report['decisions']:.2f}",
            _interval(difference["success"], "+") if difference else "",
        )
    return table


def _interval(found: dict[str, float], sign: str = "") -> str:
    return f"{found['mean']:{sign}.3f} ({found['low']:{sign}.3f} to {found['high']:{sign}.3f})"
