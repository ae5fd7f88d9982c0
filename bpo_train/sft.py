"""Imitation of a scripted expert: where a policy that has learned nothing gets its start.

A narrow model does not learn from whole episodes at once. What it needs, in this order: to copy tokens from
its context (rows of random tokens, repeated), to write a first action (rows cut after it), then whole
episodes. A stage of the curriculum is one such diet; stages are data, written in a recipe.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from wrappers import SnapshotEnv

from .collect.environment import Task
from .learn.forward import token_logprobs
from .learn.packing import Packed, collate, micro_batches
from .policy import Policy, PromptFormat

Expert = Callable[[SnapshotEnv, random.Random], str]
"""Returns the next action for the environment as it stands."""


@dataclass(frozen=True)
class Episode:
    """An expert's episode as text.

    Attributes:
        prompt: the first observation, with its info.
        turns: (action, following observation, its info) by turn.
        score, won: how it ended.
    """

    prompt: tuple[str, dict[str, Any]]
    turns: list[tuple[str, str, dict[str, Any]]]
    score: float
    won: bool


@dataclass(frozen=True)
class Stage:
    """One stage of the curriculum.

    Attributes:
        steps: optimiser steps.
        rows: "copy" (random tokens to repeat), "first" (up to the first action), "episodes".
        batch: rows a step.
        learning_rate: peak, reached after 30 steps; it falls along a half cosine.
        final_rate: where it ends, as a share of the peak.
        episodes: expert episodes to draw from.
        expert: keyword arguments that override the recipe's for this stage.
        observation_weight: weight of the loss on observation tokens; action tokens weigh 1.
        copy_rows: copy rows mixed into every second step.
        seed: of the expert's choices.
    """

    steps: int
    rows: str = "episodes"
    batch: int = 8
    learning_rate: float = 1e-3
    final_rate: float = 0.05
    episodes: int = 6000
    expert: dict[str, Any] = field(default_factory=dict)
    observation_weight: float = 0.0
    copy_rows: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows not in ("copy", "first", "episodes"):
            raise ValueError(f"a stage of unknown rows {self.rows!r}; expected 'copy', 'first' or 'episodes'")
        for name in ("steps", "batch", "episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"a stage with {name}={getattr(self, name)}; expected at least 1")


def play(env: SnapshotEnv, expert: Expert, task: Task, rng: random.Random) -> Episode:
    """Let the expert play one task."""
    text, info = env.reset(**task.reset_arguments(seed=task.index))
    prompt = (text, info)
    turns = []
    done = False
    while not done:
        action = expert(env, rng)
        text, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        turns.append((action, text, info))
    return Episode(prompt, turns, float(info.get("score", 0.0)), bool(info.get("won", False)))


def play_all(env: SnapshotEnv, expert: Expert, tasks: Sequence[Task], count: int, seed: int) -> list[Episode]:
    """`count` episodes, going round the tasks."""
    rng = random.Random(seed)
    return [play(env, expert, tasks[i % len(tasks)], rng) for i in range(count)]


def as_text(episode: Episode, mark: str = ">") -> str:
    """An episode as plain text, to train a tokenizer on."""
    return episode.prompt[0] + "".join(f"{mark} {action}\n{text}" for action, text, _ in episode.turns)


def episode_row(episode: Episode, format: PromptFormat, stage: Stage) -> Packed:
    """An episode's tokens, weighted as targets: actions 1, observations `observation_weight`."""
    tokens = format.start(*episode.prompt)
    weights = [stage.observation_weight] * len(tokens)
    turns = episode.turns[:1] if stage.rows == "first" else episode.turns
    for number, (action, text, info) in enumerate(turns):
        spoken = format.action_tokens(action)
        tokens += spoken
        weights += [1.0] * len(spoken)
        if number + 1 < len(turns):
            seen = format.follow(text, info, cut=False)
            tokens += seen
            weights += [stage.observation_weight] * len(seen)
    return _row(tokens, weights)


def copy_row(rng: random.Random, low: int, high: int, separator: int, from_start: bool) -> Packed:
    """Random ids low..high-1, a separator, the same ids again (from a random start if not `from_start`)."""
    source = [rng.randrange(low, high) for _ in range(rng.randint(8, 16))]
    start = 0 if from_start else rng.randrange(0, len(source) - 4)
    tokens = [*source, separator, *source[start:]]
    known = len(source) + 2  # the first repeated token cannot be known when the start is random
    return _row(tokens, [0.0] * known + [1.0] * (len(tokens) - known))


def _row(tokens: list[int], weights: list[float]) -> Packed:
    targets = torch.tensor([i for i, w in enumerate(weights) if w and i], dtype=torch.long)
    weight = torch.tensor(weights)[targets]
    return Packed(
        tokens=torch.tensor(tokens),
        positions=torch.arange(len(tokens)),
        spans=None,
        targets=targets,
        predictors=targets - 1,
        advantages=torch.ones_like(weight),
        weights=weight,
        behaviour=torch.zeros_like(weight),
    )


def imitate(
    policy: Policy, rows: Callable[[int], list[Packed]], stage: Stage, max_tokens: int = 8192
) -> Iterator[tuple[int, float]]:
    """Train on `rows(step)` for the stage's steps; yields (step, loss per weighted token)."""
    model = policy.model
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=stage.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    model.train()
    for step in range(stage.steps):
        fall = 0.5 * (1 + math.cos(math.pi * step / stage.steps))
        rate = min(1.0, (step + 1) / 30) * (stage.final_rate + (1 - stage.final_rate) * fall)
        for group in optimizer.param_groups:
            group["lr"] = stage.learning_rate * rate
        batch_rows = rows(step)
        scale = sum(float(row.weights.sum()) for row in batch_rows)
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part in micro_batches(batch_rows, max_tokens):
            batch = collate(part, next(model.parameters()).device)
            loss = -(batch.weights * token_logprobs(model, batch, 1.0, 4096)).sum() / scale
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield step, total


def rows_of(
    stage: Stage, episodes: Sequence[Packed], vocabulary: int, separator: int
) -> Callable[[int], list[Packed]]:
    """The diet of a stage: a function from the step to its rows."""
    rng = random.Random(stage.seed)
    order: list[int] = []
    low = min(260, vocabulary // 2)  # leave out bytes and special tokens: words are what has to be copied

    def copies(count: int, step: int) -> list[Packed]:
        early = stage.rows == "copy" and step < 0.6 * stage.steps
        return [copy_row(rng, low, vocabulary, separator, early) for _ in range(count)]

    def rows(step: int) -> list[Packed]:
        if stage.rows == "copy":
            return copies(stage.batch, step)
        while len(order) < stage.batch:
            order.extend(rng.sample(range(len(episodes)), len(episodes)))
        chosen = [episodes[order.pop()] for _ in range(stage.batch)]
        return chosen + (copies(stage.copy_rows, step) if stage.copy_rows and step % 2 == 0 else [])

    return rows
