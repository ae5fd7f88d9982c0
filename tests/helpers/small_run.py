"""The smallest run of `python -m bpo_train` that does everything: a random policy, the compact shop."""

from __future__ import annotations

from pathlib import Path

from bpo_envs.webshop.expert import NoisyExpert
from bpo_train.collect.environment import EnvironmentOptions, make_environment, tasks_of
from bpo_train.policy import FormatOptions, Policy, TinyModel, new_policy, train_tokenizer
from bpo_train.sft import as_text, play_all
from rollouts import COMPACT

WRAPPERS = (COMPACT, "wordy:WordyReward")  # a policy that never wins earns something too

OPTIONS = {
    "env": "bpo/WebShop-v0",
    "max-episode-steps": 4,
    "eval-tasks": 4,
    "prompts": 3,
    "updates": 2,
    "branch-points": 1,
    "siblings": 3,
    "spacing": 0,
    "max-new-tokens": 6,
    "context-limit": 512,
    "max-observation-tokens": 60,
    "learning-rate": 0.01,
    "kl-weight": 0.01,
    "threads": 1,
}


def arguments(model: Path, output: Path, **changes: object) -> list[str]:
    """Command-line arguments; keyword `a_b` sets flag --a-b, True and False switch one on and off."""
    flags: list[str] = []
    options: dict[str, object] = {**OPTIONS, "model": model, "output": output}
    options |= {name.replace("_", "-"): value for name, value in changes.items()}
    for name, value in options.items():
        if isinstance(value, bool):
            flags.append(f"--{name}" if value else f"--no-{name}")
        elif value is not None:
            flags += [f"--{name}", str(value)]
    return ["--recipe", str(Path(__file__).parent / "empty.yaml"), "--env-wrappers", *WRAPPERS, *flags]


def random_policy() -> Policy:
    """A policy that knows the shop's words and nothing else."""
    env = make_environment(EnvironmentOptions("bpo/WebShop-v0", {}, (COMPACT,), 8))
    episodes = play_all(env, NoisyExpert(), tasks_of(env).tasks, 40, 0)
    tokenizer = train_tokenizer([as_text(episode) for episode in episodes], 320)
    size = TinyModel(hidden_size=32, layers=1, heads=4, kv_heads=2, window=1024)
    return new_policy(tokenizer, size, FormatOptions(), 0)


TIMINGS = ("seconds", "per_second")


def numbers(record: dict[str, float]) -> dict[str, float]:
    """A record of metrics without its timings."""
    return {name: value for name, value in record.items() if not name.endswith(TIMINGS)}
