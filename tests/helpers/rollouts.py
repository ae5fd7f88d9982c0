"""Collecting on the real shop with an engine whose choices a test can foresee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from bpo_train.collect.collector import Collector, GrowthOptions
from bpo_train.collect.environment import EnvironmentOptions, Task, make_environment, tasks_of
from bpo_train.collect.pool import InProcessPool
from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.engine import Completion, Engine, Request, Sampling, uniforms
from bpo_train.policy import FormatOptions, PromptFormat, make_format
from bpo_train.tree import RolloutTree
from tiny_models import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
COMPACT = "bpo_envs.webshop.compact:CompactView"
SHOWN = "{observation}\nactions:\n{admissible_actions}\n"
"""A template that shows a scripted agent what it can do."""

FORMAT = make_format(
    TOKENIZER, FormatOptions(first_template=SHOWN, later_template=SHOWN, max_observation_tokens=20_000)
)
SAMPLING = Sampling(FORMAT.stop_ids, max_new_tokens=200)

Script = Callable[[str, tuple[int, ...]], str]
"""From the conversation so far and the request's key to an action."""


def choose(text: str, key: tuple[int, ...]) -> str:
    """One of the actions shown last, or, one time in eight, nonsense."""
    shown = text.rsplit("actions:\n", 1)[1].rsplit("\n>", 1)[0].split("\n")
    first, second = uniforms(key, 2)
    return "frobnicate" if first < 1 / 8 else shown[int(second * len(shown))]


@dataclass
class Cached:
    """What a scripted engine's cache covers; the engine checks that it is a prefix."""

    tokens: list[int]
    version: int


@dataclass
class ScriptedEngine:
    """An engine that says what a script tells it to.

    It reports log-probabilities and entropies that depend on the request's key alone, keeps a record of what
    it was asked, and refuses caches that don't cover a prefix of the context, or are of an older version.
    """

    script: Script = choose
    version: int = 0
    max_batch: int = 64
    asked: list[tuple[Request, Completion]] = field(default_factory=list)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        return [self._answer(request, sampling) for request in requests]

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        self.version = version

    def _answer(self, request: Request, sampling: Sampling) -> Completion:
        cache = request.cache
        if cache is not None:
            assert isinstance(cache, Cached)
            covered = min(len(cache.tokens), len(request.tokens))
            assert cache.tokens[:covered] == request.tokens[:covered], "the cache is of another context"
            assert cache.version == self.version
        spoken = FORMAT.action_tokens(self.script(TOKENIZER.decode(request.tokens), request.key))
        tokens = spoken[: sampling.max_new_tokens]
        draws = uniforms((*request.key, 1), len(tokens))
        completion = Completion(
            tokens=tokens,
            logprobs=(-draws).tolist(),
            entropies=(3 * draws).tolist(),
            stopped=tokens[-1] in sampling.stop_ids,
            version=self.version,
            cache=Cached([*request.tokens, *tokens[:-1]], self.version),
        )
        self.asked.append((request, completion))
        return completion


def shop(*, compact: bool = True, steps: int = 6, split: str = "test", **kwargs) -> EnvironmentOptions:
    """The shop as configuration."""
    wrappers = (COMPACT,) if compact else ()
    return EnvironmentOptions("bpo/WebShop-v0", {"split": split, **kwargs}, wrappers, steps)


def pool_of(options: EnvironmentOptions) -> InProcessPool:
    return InProcessPool(partial(make_environment, options))


def first_tasks(options: EnvironmentOptions, count: int) -> tuple[Task, ...]:
    return tasks_of(make_environment(options)).tasks[:count]


def make_collector(
    engine: Engine,
    pool: InProcessPool,
    schedule: str = "",
    *,
    form: PromptFormat = FORMAT,
    sampling: Sampling = SAMPLING,
    growth: GrowthOptions | None = None,
    **options,
) -> Collector:
    """A collector; `schedule` "" for backbones only, `options` are the schedule's."""
    made = make_schedule(schedule, ScheduleOptions(**{"spacing": 0, **options})) if schedule else None
    return Collector(engine, pool, form, sampling, made, growth or GrowthOptions(context_limit=100_000))


def replay(
    tree: RolloutTree, task: Task, options: EnvironmentOptions, form: PromptFormat, weight: float = 0.0
) -> None:
    """Walk every leaf's path in a fresh environment and compare all that the tree holds with what happens."""
    env = make_environment(options)
    for leaf, branch in enumerate(tree.branches):
        text, info = env.reset(**task.reset_arguments(seed=0))
        expected = form.start(text, info)
        ended = ""
        for owner, depth, decision in tree.path(leaf):
            forked = owner != 0 and depth == tree.branches[owner].fork
            assert (tree.context_of(owner) if forked else decision.context) == expected
            assert ended == ""
            text, reward, terminated, truncated, info = env.step(decision.text)
            expected = form.follow(text, info, decision.cut)
            ended = "terminated" if terminated else "step_limit" if truncated else ""
            last = leaf == owner and depth == branch.end - 1
            assert decision.reward == ((1 - weight) * reward + weight * info["won"] if last else reward)
        assert branch.ended in (ended, "context")
        assert (branch.score, branch.won) == (info["score"], info["won"])
    env.close()


def outline(tree: RolloutTree) -> list[tuple]:
    """Everything in a tree but floating-point noise."""
    return [
        (
            branch.parent,
            branch.fork,
            branch.ended,
            branch.score,
            branch.won,
            [(d.context, d.action, d.text, d.reward, d.cut) for d in branch.decisions],
        )
        for branch in tree.branches
    ] + [(p.branch, p.depth, p.siblings, p.scheduled) for p in tree.branch_points]
