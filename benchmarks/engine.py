"""What forked KV caches save: our engine against transformers' `generate()`, which prefills every turn anew.

    python benchmarks/engine.py [--model smollm2] [--dtype bfloat16] [--prompts 1] [--repeat 1]

Both grow the same trees in the same run: M = 2 branch points, K = 4, 10 turns, contexts that begin with 150
tokens and get 80 more after every action, actions of 16 tokens. The backbone is grown first, then all
siblings together, as the collector does it with the default schedule. Figures are generated tokens per second
of the process's CPU, one thread. The engine also returns log-probs and entropies; `generate()` is not asked
for them. Without --model: a random Llama of SmolLM2's shape with half its layers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bpo_train.engine import Request, Sampling
from bpo_train.engine.hf import HFEngine
from bpo_train.policy import FormatOptions, load_policy
from bpo_train.policy.model import DTYPES

PROMPT, OBSERVATION, ACTION, TURNS = 150, 80, 16, 10
BRANCH_POINTS, SIBLINGS = (3, 6), 4

Act = Callable[[list[list[int]], list[object]], tuple[list[list[int]], list[object]]]
"""From contexts and what was returned with their beginnings: the actions, and what to hand in next time."""


def grow(prompts: int, act: Act) -> int:
    """Grow trees; returns the number of generated tokens."""
    generator = torch.Generator().manual_seed(0)

    def observe(count: int) -> list[int]:
        return torch.randint(3, 4096, (count,), generator=generator).tolist()

    generated = 0

    def play(
        rows: list[list[int]], states: list[object], turns: list[int], starts: list[list]
    ) -> list[object]:
        """Play every row to its last turn; `starts[i]` gets the context of each of its decisions."""
        nonlocal generated
        rows, states, live = list(rows), list(states), list(range(len(rows)))
        while live:
            for i in live:
                starts[i].append(rows[i])
            actions, found = act([rows[i] for i in live], [states[i] for i in live])
            for i, action, state in zip(live, actions, found):
                generated += len(action)
                states[i] = state
                turns[i] -= 1
                rows[i] = rows[i] + action + observe(OBSERVATION)
            live = [i for i in live if turns[i]]
        return states

    backbones: list[list] = [[] for _ in range(prompts)]
    ends = play([observe(PROMPT) for _ in backbones], [None] * prompts, [TURNS] * prompts, backbones)
    forks = [(i, depth) for i in range(prompts) for depth in BRANCH_POINTS for _ in range(SIBLINGS - 1)]
    play(
        [backbones[i][depth] for i, depth in forks],
        [ends[i] for i, _ in forks],
        [TURNS - depth for _, depth in forks],
        [[] for _ in forks],
    )
    return generated


def engine_act(model: torch.nn.Module) -> Act:
    engine, sampling = HFEngine(model), Sampling(frozenset(), ACTION)
    counter = iter(range(10**9))

    def act(rows: list[list[int]], caches: list[object]) -> tuple[list[list[int]], list[object]]:
        requests = [Request(row, (next(counter),), cache) for row, cache in zip(rows, caches)]
        completions = engine.generate(requests, sampling)
        return [c.tokens for c in completions], [c.cache for c in completions]

    return act


def generate_act(model: torch.nn.Module) -> Act:
    def act(rows: list[list[int]], states: list[object]) -> tuple[list[list[int]], list[object]]:
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        out = model.generate(  # type: ignore[operator]
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            min_new_tokens=ACTION,
            max_new_tokens=ACTION,
            pad_token_id=0,
        )
        return out[:, width:].tolist(), states

    return act


def load(name: str, dtype: str) -> torch.nn.Module:
    if name:
        return load_policy(name, FormatOptions(), dtype).model.eval()
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=15,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).to(DTYPES[dtype]).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="", help="folder, hub id or smollm2; default: a random Llama")
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--prompts", type=int, default=1, help="trees grown together")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load(options.model, options.dtype)
    ways = {"generate": generate_act(model), "engine": engine_act(model)}
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    for act in ways.values():
        act([[1, 2, 3]], [None])  # warm-up
    for _ in range(options.repeat):
        for way, act in ways.items():
            begin = time.process_time()
            tokens = grow(options.prompts, act)
            speeds[way].append(tokens / (time.process_time() - begin))
    medians = {way: statistics.median(found) for way, found in speeds.items()}

    name = options.model or "random Llama"
    print(
        f"{name}, {sum(p.numel() for p in model.parameters()):,} parameters, {options.dtype}, one thread; "
        f"{options.prompts} trees, {tokens} generated tokens, {options.repeat} repetitions"
    )
    for way, speed in medians.items():
        print(f"{way:<9}{speed:8.1f} tokens per CPU-second")
    print(f"engine / generate: {medians['engine'] / medians['generate']:.2f}")


if __name__ == "__main__":
    main()
