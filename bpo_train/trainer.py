"""The training loop: collect trees, credit them, update, and evaluate before and after."""

from __future__ import annotations

import copy
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bpo_envs.assets import asset

from . import methods
from .checkpoint import save_checkpoint
from .collect.collector import Collector, GrowthOptions
from .collect.environment import Task, Tasks, make_environment, tasks_of
from .collect.pool import InProcessPool, PoolMeters
from .config import Config
from .engine import Sampling
from .engine.hf import HFEngine
from .evaluate import Evaluation, evaluate, paired_difference
from .imitation import imitation_policy
from .learn import Learner
from .manifest import RunFolder, machine
from .meters import batch_metrics
from .policy import Policy, load_policy
from .progress import Display, summary_table

TRAINING = 0x7EE5
"""First number of all random keys of training."""


def load_model(name: str, config: Config) -> Policy:
    """The policy called `name`: "asset:FOLDER" for one that ships, else a folder or a hub id."""
    if not name:
        raise ValueError(
            "no model: give --model FOLDER (or a hub id), or --from-scratch to make one by imitation"
        )
    kind, _, rest = name.partition(":")
    source = str(asset(*rest.split("/"))) if kind == "asset" else name
    return load_policy(source, config.format, config.run.dtype, config.run.device)


class Trainer:
    """One run in one process.

    Args:
        config: the whole configuration.
        console: where to report; a standard one if not given.

    Raises:
        ValueError: options that cannot go together; before anything is written.
    """

    def __init__(self, config: Config, console: Console | None = None) -> None:
        self.config = config
        self.console = console or Console()
        if config.run.threads:
            torch.set_num_threads(config.run.threads)
        m = config.method
        self.credit, self.schedule = methods.build(
            m.method, m.schedule, m.returns, config.schedule, config.credit
        )
        self.tasks, self.train_pool = self._environments(config.environment.train_split)
        self.eval_tasks, self.eval_pool = self._environments(config.environment.eval_split)
        if config.run.from_scratch:
            self.policy = imitation_policy(config, self.console)
        else:
            self.policy = load_model(config.run.model, config)
        self.engine = HFEngine(self.policy.model, config.run.engine_batch)
        reference = copy.deepcopy(self.policy.model).requires_grad_(False) if config.learn.kl_weight else None
        self.learner = Learner(self.policy.model, config.learn, config.rollout.temperature, reference)
        self.generator = torch.Generator().manual_seed(config.run.seed)
        self.sampling = Sampling(
            self.policy.format.stop_ids, config.rollout.max_new_tokens, config.rollout.temperature
        )
        window = min(config.rollout.context_limit, self.engine.window)
        self.growth = GrowthOptions(window, config.rollout.success_weight, config.rollout.fill)
        self.collector = Collector(
            self.engine, self.train_pool, self.policy.format, self.sampling, self.schedule, self.growth
        )
        self.cursor = 0  # tasks drawn so far

    def _environments(self, split: str) -> tuple[Tasks, InProcessPool]:
        factory = partial(make_environment, self.config.environment.options(split))
        probe = factory()
        tasks = tasks_of(probe)
        probe.close()
        return tasks, InProcessPool(factory)

    def run(self) -> dict[str, Any]:
        """Train, evaluate, write the run folder; returns the summary."""
        config = self.config
        folder = RunFolder.create(config.run.output, config.method.method)
        folder.write_json("manifest.json", self._manifest())
        begin = time.perf_counter()
        self.console.print(
            f"{config.method.method} on {config.environment.env}: {len(self.tasks)} training tasks, "
            f"{self.policy.model.num_parameters():,} parameters, run folder {folder.path}",
            highlight=False,
        )
        start = self._evaluate("before")
        with Display(config.learn.updates, "training", self.console) as display:
            for update in range(config.learn.updates):
                metrics = self.update(update)
                folder.log(update + 1, metrics)
                display.update(update + 1, metrics)
                done = update + 1
                if (
                    config.run.eval_every
                    and done % config.run.eval_every == 0
                    and done < config.learn.updates
                ):
                    between = self._evaluate(f"after {done} updates")
                    folder.log(
                        done, {f"eval_{k}": v for k, v in between.summary().items()} if between else {}
                    )
                if config.run.checkpoint_every and done % config.run.checkpoint_every == 0:
                    self.save(folder.path / "checkpoint")
        self.save(folder.path / "checkpoint")
        end = self._evaluate("after")
        summary = self._summary(start, end, time.perf_counter() - begin)
        folder.write_json("summary.json", summary)
        folder.close()
        self.train_pool.close()
        self.eval_pool.close()
        if "difference" in summary:
            self.console.print(summary_table(summary))
        self.console.print(f"{summary['seconds']:.0f} s in all; run folder: {folder.path}", highlight=False)
        return summary

    def next_tasks(self) -> list[Task]:
        """The prompts of the next batch: seeded shuffles of the panel, one after the other."""
        first, self.cursor = self.cursor, self.cursor + self.config.run.prompts
        return [self.tasks.at(i, self.config.run.seed) for i in range(first, self.cursor)]

    def update(self, number: int) -> dict[str, float]:
        """Collect a batch, credit it, update once; returns metrics."""
        begin = time.perf_counter()
        self.train_pool.meters = PoolMeters()
        trees = self.collector.collect(self.next_tasks(), (TRAINING, self.config.run.seed, number))
        collected = time.perf_counter()
        credits = self.credit(trees)
        self.schedule.observe(trees)
        learned = self.learner.update(trees, credits, self.generator)
        self.engine.refresh(self.learner.updates)
        end = time.perf_counter()
        pool = self.train_pool.meters
        metrics = batch_metrics(trees, credits) | learned
        return metrics | {
            "environment_steps": pool.steps,
            "snapshots": pool.snapshots,
            "snapshot_seconds": pool.snapshot_seconds,
            "restore_seconds": pool.restore_seconds,
            "peak_live_snapshots": pool.peak_live_snapshots,
            "live_snapshots": self.train_pool.live_snapshots,
            "collect_seconds": collected - begin,
            "learn_seconds": end - collected,
            "tokens_per_second": metrics["generated_tokens"] / (end - begin),
        }

    def save(self, folder: Path) -> None:
        """Write a checkpoint."""
        state = {
            "updates": self.learner.updates,
            "cursor": self.cursor,
            "credit": self.credit.state_dict(),
            "schedule": self.schedule.state_dict(),
        }
        tensors = {"learner": self.learner.state_dict(), "generator": self.generator.get_state()}
        save_checkpoint(folder, self.policy, state, tensors)

    def _evaluate(self, when: str) -> Evaluation | None:
        run = self.config.run
        if not run.eval_tasks:
            return None
        if run.eval_tasks > len(self.eval_tasks):
            raise ValueError(
                f"eval_tasks is {run.eval_tasks}, but the split has {len(self.eval_tasks)} tasks"
            )
        tasks = self.eval_tasks.tasks[: run.eval_tasks]
        found = evaluate(
            self.engine, self.eval_pool, self.policy.format, self.sampling, self.growth, tasks, run.seed
        )
        numbers = found.summary()
        self.console.print(
            f"{when}: success {numbers['success']:.3f} sampled, {numbers['greedy_success']:.3f} greedy, "
            f"score {numbers['score']:.3f} ({numbers['n']} held-out tasks)",
            highlight=False,
        )
        return found

    def _summary(self, start: Evaluation | None, end: Evaluation | None, seconds: float) -> dict[str, Any]:
        if start is None or end is None:
            return {"seconds": seconds}
        return {
            "start": start.summary(),
            "end": end.summary(),
            "difference": paired_difference(start.sampled.won, end.sampled.won),
            "seconds": seconds,
        }

    def _manifest(self) -> dict[str, Any]:
        return {
            "config": self.config.to_plain(),
            "credit": self.credit.name,
            "schedule": self.schedule.name,
            "predictable": self.schedule.predictable,
            "branch_points": self.schedule.options.branch_points,
            "siblings": self.schedule.options.siblings,
            "returns_per_prompt": self.collector.returns,
            "on_policy": self.config.learn.on_policy,
            "train_tasks": {"count": len(self.tasks), "panel_digest": self.tasks.digest},
            "eval_tasks": {"count": len(self.eval_tasks), "panel_digest": self.eval_tasks.digest},
            "parameters": self.policy.model.num_parameters(),
            "machine": machine(),
        }
