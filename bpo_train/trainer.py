"""The training loop: collect trees, credit them, update, and evaluate before and after.

Every random number comes from a counter (seed, update, tree, branch, decision), and a checkpoint follows each
update: a run that was killed and resumed goes through the same numbers as one that was not.
"""

from __future__ import annotations

import copy
import dataclasses
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from . import methods
from .checkpoint import CheckpointError, find_checkpoint, load_checkpoint, save_checkpoint
from .collect.collector import Collector, CollectorMeters, GrowthOptions, Mismatch
from .collect.environment import Task, Tasks, make_environment, tasks_of
from .collect.pool import InProcessPool, PoolMeters
from .config import Config
from .credit import make_credit
from .engine import Sampling
from .engine.hf import HFEngine
from .evaluate import Evaluation, evaluate, paired_difference
from .imitation import imitation_policy
from .learn import Learner
from .manifest import RunFolder, machine
from .meters import batch_metrics
from .policy import Policy, WithoutAdapter, add_adapter, load_adapter, load_policy
from .progress import Display, accounts_table, summary_table
from .signals import StopSignals

TRAINING = 0x7EE5
"""First number of all random keys of training."""


class Trainer:
    """One run in one process.

    Args:
        config: the whole configuration.
        resume: the folder of a run of that configuration, to go on from its last checkpoint.
        console: where to report; a standard one if not given.

    Raises:
        ValueError: options that cannot go together; before anything is written.
        FileExistsError: the output folder holds a run already.
        CheckpointError: nothing to resume from.
    """

    def __init__(self, config: Config, resume: Path | None = None, console: Console | None = None) -> None:
        self.config = config
        self.console = console or Console()
        if resume is None:
            RunFolder.check_free(config.run.output)
        m = config.method
        self.credit, self.schedule = methods.build(
            m.method, m.schedule, m.returns, config.schedule, config.credit
        )
        self.tasks, self.train_pool = self._environments(config.environment.train_split)
        self.eval_tasks, self.eval_pool = self._environments(config.environment.eval_split)
        if config.run.eval_tasks > len(self.eval_tasks):
            raise ValueError(
                f"eval_tasks is {config.run.eval_tasks}, but the split {config.environment.eval_split!r} has "
                f"{len(self.eval_tasks)} tasks"
            )
        self.folder: RunFolder | None = None if resume is None else RunFolder(resume)
        checkpoint = None if resume is None else find_checkpoint(resume / "checkpoint")
        saved = (
            None if checkpoint is None else load_checkpoint(checkpoint)
        )  # damage shows before anything else
        self.policy, reference = self._policies(resume, checkpoint)
        self.engine = HFEngine(self.policy.model, config.run.engine_batch)
        self.learner = Learner(self.policy.model, config.learn, config.rollout.temperature, reference)
        self.generator = torch.Generator().manual_seed(config.run.seed)
        self.sampling = Sampling(
            self.policy.format.stop_ids, config.rollout.max_new_tokens, config.rollout.temperature
        )
        window = min(config.rollout.context_limit, self.engine.window)
        if self.sampling.max_new_tokens >= window:
            raise ValueError(
                f"max_new_tokens is {self.sampling.max_new_tokens}, but the model's window holds {window}"
            )
        r = config.rollout
        if r.top_k or r.top_p != 1.0:
            raise ValueError(
                f"top_k={r.top_k}, top_p={r.top_p}: training draws from the whole distribution, since what "
                "is learned from must be what was drawn from; leave them to eval"
            )
        self.growth = GrowthOptions(window, r.success_weight, r.fill, r.sentinel)
        self.collector = Collector(
            self.engine, self.train_pool, self.policy.format, self.sampling, self.schedule, self.growth
        )
        # Meters want advantages in units of the return; only grpo divides them by a deviation.
        unscaled = dataclasses.replace(config.credit, scale="none")
        self.unscaled = make_credit("grpo", unscaled) if self.credit.name == "grpo" else None
        self.cursor = 0  # tasks drawn so far
        self.seconds = 0.0  # spent by earlier parts of a resumed run
        self.run_id = uuid.uuid4().hex
        if checkpoint is not None and saved is not None:
            assert self.folder is not None
            self.run_id = self.folder.read_json("manifest.json").get("run_id", "")
            self._load(checkpoint, *saved)

    def _environments(self, split: str) -> tuple[Tasks, InProcessPool]:
        factory = partial(make_environment, self.config.environment.options(split))
        probe = factory()
        tasks = tasks_of(probe)
        probe.close()
        return tasks, InProcessPool(factory)

    def _policies(self, resume: Path | None, checkpoint: Path | None) -> tuple[Policy, Any]:
        """The policy to train and the reference model of the KL term (None without one)."""
        config = self.config
        if config.run.from_scratch:
            if config.lora.lora_rank:
                raise ValueError("LoRA needs a model to start from: run `sft` first, then name its folder")
            start = (
                self._load_model(str(resume / "start")) if resume else imitation_policy(config, self.console)
            )
        else:
            start = self._load_model(config.run.model)
        if config.lora.lora_rank:
            if checkpoint:
                start.model = load_adapter(start.model, checkpoint)
            else:
                start.model = add_adapter(start.model, config.lora, config.run.model, config.run.seed)
            return start, WithoutAdapter(start.model) if config.learn.kl_weight else None
        policy = start if checkpoint is None else self._load_model(str(checkpoint))
        if not config.learn.kl_weight:
            return policy, None
        reference = start.model if policy is not start else copy.deepcopy(start.model)
        return policy, reference.requires_grad_(False)

    def _load_model(self, name: str) -> Policy:
        return load_policy(name, self.config.format, self.config.run.dtype, self.config.run.device)

    def run(self) -> dict[str, Any]:
        """Train to the end, evaluate, write the run folder; the summary, or {} if a signal stopped it."""
        config = self.config
        begin = time.perf_counter() - self.seconds
        total = config.learn.updates
        with StopSignals() as stop, Display(total, "training", self.console) as display:
            start = self._begin()
            assert self.folder is not None
            while self.learner.updates < total and not stop.requested:
                metrics = self.update()
                done = self.learner.updates
                self.folder.log(done, metrics)
                display.update(done, metrics)
                if config.run.eval_every and done % config.run.eval_every == 0 and done < total:
                    self._evaluate(f"after {done} updates", done)
                self.seconds = time.perf_counter() - begin
                every = config.run.checkpoint_every
                if done == total or stop.requested or (every and done % every == 0):
                    self.save()
        if self.learner.updates < total:
            self.console.print(
                f"stopped by {stop.requested} after update {self.learner.updates}; go on with "
                f"python -m bpo_train --resume {self.folder.path}",
                highlight=False,
            )
            self._close()
            return {}
        summary = self._summary(start, self._evaluate("after"), time.perf_counter() - begin)
        self.folder.write_json("summary.json", summary)
        self._close()
        if "difference" in summary:
            self.console.print(summary_table(summary))
        self.console.print(accounts_table(self.folder.metrics()))
        self.console.print(
            f"{summary['seconds']:.0f} s in all; run folder: {self.folder.path}", highlight=False
        )
        return summary

    def _begin(self) -> Evaluation | None:
        """Open the run folder and evaluate the start; or, resumed, read what was found then."""
        config = self.config
        if self.folder is not None:
            self.folder.forget_after(self.learner.updates)
            self.console.print(
                f"resuming {self.folder.path} after update {self.learner.updates}", highlight=False
            )
            found = self.folder.read_json("start.json")
            return Evaluation.from_plain(found) if found else None
        self.folder = RunFolder.create(config.run.output, config.method.method)
        self.folder.write_json("manifest.json", self._manifest())
        self.console.print(
            f"{config.method.method} on {config.environment.env}: {len(self.tasks)} training tasks, "
            f"{self.policy.model.num_parameters():,} parameters, run folder {self.folder.path}",
            highlight=False,
            soft_wrap=True,
        )
        if shared := {t.id for t in self.tasks.tasks} & {t.id for t in self.eval_tasks.tasks}:
            self.console.print(
                f"the evaluation is not held out: {len(shared)} of its tasks are trained on too"
            )
        if config.run.from_scratch:
            self.policy.save(self.folder.path / "start")
        start = self._evaluate("before", 0)
        self.folder.write_json("start.json", start.to_plain() if start else {})
        self.save()
        return start

    def next_tasks(self) -> list[Task]:
        """The prompts of the next batch: seeded shuffles of the panel, one after the other."""
        first, self.cursor = self.cursor, self.cursor + self.config.run.prompts
        return [self.tasks.at(i, self.config.run.seed) for i in range(first, self.cursor)]

    def update(self) -> dict[str, float]:
        """Collect a batch, credit it, update once; returns metrics."""
        begin = time.perf_counter()
        self.train_pool.meters, self.collector.meters = PoolMeters(), CollectorMeters()
        forwarded = self.engine.forwarded_tokens
        key = (TRAINING, self.config.run.seed, self.learner.updates)
        trees = self.collector.collect(self.next_tasks(), key)
        self._report(self.collector.meters.mismatches)
        if not trees:
            raise RuntimeError(
                "no tree of this batch is valid: restores are not faithful (see sentinel.jsonl)"
            )
        collected = time.perf_counter()
        credits = self.credit(trees)
        self.schedule.observe(trees)
        credited = time.perf_counter()
        learned = self.learner.update(trees, credits, self.generator)
        self.engine.refresh(self.learner.updates)
        end = time.perf_counter()
        pool = self.train_pool.meters
        metered = credits if self.unscaled is None else self.unscaled(trees)
        metrics = batch_metrics(trees, metered, self.config.credit.gamma) | learned
        return metrics | {
            "forwarded_tokens": self.engine.forwarded_tokens - forwarded,
            "sentinel_checks": self.collector.meters.sentinel_checks,
            "invalid_trees": self.config.run.prompts - len(trees),
            "environment_steps": pool.steps,
            "snapshots": pool.snapshots,
            "restores": pool.restores,
            "generate_seconds": self.collector.meters.generate_seconds,
            "environment_seconds": pool.step_seconds,
            "snapshot_seconds": pool.snapshot_seconds,
            "restore_seconds": pool.restore_seconds,
            "collect_seconds": collected - begin,
            "credit_seconds": credited - collected,
            "learn_seconds": end - credited,
            "seconds": end - begin,
            "peak_live_snapshots": pool.peak_live_snapshots,
            "peak_snapshot_bytes": pool.peak_snapshot_bytes,
            "live_snapshots": self.train_pool.live_snapshots,
            "snapshot_bytes": self.train_pool.snapshot_bytes,
            "tokens_per_second": metrics["generated_tokens"] / (end - begin),
        }

    def _report(self, mismatches: list[Mismatch]) -> None:
        """Tell of unfaithful restores; their trees are not learned from."""
        for found in mismatches:
            self.console.print(
                f"[red]a restore was not faithful[/red] in task {found.task_id} at decision {found.depth}: "
                "the same action had another outcome; its tree is left out, the trace is in sentinel.jsonl"
            )
            if self.folder is not None:
                self.folder.append("sentinel.jsonl", dataclasses.asdict(found))

    def save(self) -> None:
        """Write a checkpoint into the run folder."""
        assert self.folder is not None
        state = {
            "cursor": self.cursor,
            "seconds": self.seconds,
            "run_id": self.run_id,
            "credit": self.credit.state_dict(),
            "schedule": self.schedule.state_dict(),
        }
        tensors = {"learner": self.learner.state_dict(), "generator": self.generator.get_state()}
        save_checkpoint(self.folder.path / "checkpoint", self.policy, state, tensors)

    def _load(self, checkpoint: Path, state: dict[str, Any], tensors: dict[str, Any]) -> None:
        if state.get("run_id") != self.run_id:
            raise CheckpointError(f"{checkpoint} was written by another run than the one in its folder")
        try:
            self.learner.load_state_dict(tensors["learner"])
            self.generator.set_state(tensors["generator"])
            self.credit.load_state_dict(state["credit"])
            self.schedule.load_state_dict(state["schedule"])
            self.cursor, self.seconds = int(state["cursor"]), float(state["seconds"])
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"{checkpoint} does not fit this run: {error!r}") from error
        self.engine.refresh(self.learner.updates)

    def _evaluate(self, when: str, update: int | None = None) -> Evaluation | None:
        run = self.config.run
        if not run.eval_tasks:
            return None
        tasks = self.eval_tasks.tasks[: run.eval_tasks]
        found = evaluate(
            self.engine, self.eval_pool, self.policy.format, self.sampling, self.growth, tasks, run.seed
        )
        numbers = found.summary()
        self.console.print(
            f"{when}: success {numbers['success']:.3f} sampled, {numbers['greedy_success']:.3f} greedy, "
            f"score {numbers['score']:.3f} ({numbers['n']} tasks)",
            highlight=False,
            soft_wrap=True,
        )
        if update is not None and self.folder is not None:
            self.folder.log(update, {f"eval_{name}": value for name, value in numbers.items()})
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

    def _close(self) -> None:
        if self.folder is not None:
            self.folder.close()
        self.train_pool.close()
        self.eval_pool.close()

    def _manifest(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
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
