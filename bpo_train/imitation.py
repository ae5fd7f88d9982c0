"""Making a starting policy by imitation: play the expert, train a tokenizer, run the curriculum of `sft`."""

from __future__ import annotations

import json
from typing import Any

import torch
from rich.console import Console

from .collect.environment import load_object, make_environment, tasks_of
from .config import Config
from .policy import DTYPES, Policy, new_policy, to_device, train_tokenizer
from .progress import Display
from .sft import Stage, as_text, episode_row, imitate, play_all, rows_of


def imitation_policy(config: Config, console: Console) -> Policy:
    """A policy that imitates the configured expert on the training split.

    Raises:
        ValueError: no expert is configured, or no stages with its episodes.
    """
    stages = config.imitation.curriculum()
    if not config.environment.expert:
        raise ValueError(
            "imitation needs an `expert`, a scripted policy by import path; name a recipe that has one"
        )
    if all(stage.rows == "copy" for stage in stages):
        raise ValueError("no stage has the expert's episodes; add one with rows: first or rows: episodes")
    make_expert = load_object(config.environment.expert)
    env = make_environment(config.environment.options(config.environment.train_split))
    tasks = tasks_of(env).tasks
    seed = config.run.seed

    def episodes(stage: Stage, count: int) -> Any:
        expert = make_expert(**{**config.environment.expert_kwargs, **stage.expert})
        return play_all(env, expert, tasks, count, seed + stage.seed)

    first = next(stage for stage in stages if stage.rows != "copy")
    texts = [
        as_text(e, config.format.action_mark) for e in episodes(first, config.imitation.tokenizer_episodes)
    ]
    tokenizer = train_tokenizer(texts, config.tiny.vocabulary)
    policy = new_policy(tokenizer, config.tiny, config.format, seed)
    to_device(policy.model, config.run.device)
    separator = min(policy.format.stop_ids)
    played: dict[str, Any] = {}
    with Display(sum(stage.steps for stage in stages), "imitation", console) as display:
        done = 0
        for stage in stages:
            rows = []
            if stage.rows != "copy":
                key = json.dumps([stage.expert, stage.seed, stage.episodes])
                if key not in played:
                    played[key] = episodes(stage, stage.episodes)
                rows = [episode_row(episode, policy.format, stage) for episode in played[key]]
            losses = []
            for step, loss in imitate(policy, rows_of(stage, rows, len(tokenizer), separator), stage):
                losses.append(loss)
                if (step + 1) % 100 == 0 or step + 1 == stage.steps:
                    display.update(done + step + 1, {})
                    recent = sum(losses[-100:]) / len(losses[-100:])
                    display.note(f"{stage.rows} {step + 1}/{stage.steps}: loss {recent:.3f}")
            done += stage.steps
    env.close()
    torch.nn.Module.to(policy.model, DTYPES[config.run.dtype])
    return policy
