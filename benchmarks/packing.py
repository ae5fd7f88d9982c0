"""What it saves to train a tree as one sequence (`tree`) instead of one row a leaf (`rows`).

    python benchmarks/packing.py [--model smollm2] [--dtype bfloat16] [--repeat 3] [--kl]

One update of the learner on one tree: a backbone of 800 tokens, M = 2 branch points, K = 4, branches of 200
tokens, two fifths of all tokens actions. Times are of the process's CPU, medians over repetitions that
alternate between the layouts, after one that warms up. Memory is the peak beyond the loaded model, each
layout in a process of its own. Without --model: a random Llama of 7 million parameters, about a minute.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bpo_train.credit import TreeCredit
from bpo_train.learn import Learner, LearnOptions
from bpo_train.learn.packing import LAYOUTS
from bpo_train.policy import FormatOptions, load_policy
from bpo_train.policy.model import DTYPES
from bpo_train.tree import BranchPoint, Decision, RolloutTree


def decision(context: int, action: int, generator: torch.Generator) -> Decision:
    """Random tokens; the behaviour log-probs don't matter to the cost."""
    tokens = torch.randint(1, 4096, (context + action,), generator=generator).tolist()
    return Decision(tokens[:context], tokens[context:], [-8.0] * action, None, "")


def benchmark_tree() -> RolloutTree:
    """Turns of some 30 tokens of context and 20 of action; 3 siblings behind 300 and 3 behind 550 tokens."""
    generator = torch.Generator().manual_seed(0)
    tree = RolloutTree("benchmark")
    contexts = [50, *[30] * 14, 10]
    tree.backbone.decisions = [decision(context, 20, generator) for context in contexts]
    for depth in (5, 10):
        siblings = [tree.add_fork(0, depth) for _ in range(3)]
        for index in siblings:
            later = [decision(40, 20, generator) for _ in range(3)]
            tree.branches[index].decisions = [decision(0, 20, generator), *later]
        tree.branch_points.append(BranchPoint(0, depth, siblings))
    return tree


def random_credit(tree: RolloutTree) -> TreeCredit:
    generator = torch.Generator().manual_seed(1)
    table = [torch.randn(len(b.decisions), generator=generator).tolist() for b in tree.branches]
    return TreeCredit(table, [[1.0] * len(row) for row in table])


def load(name: str, dtype: str) -> torch.nn.Module:
    if name:
        return load_policy(name, FormatOptions(), dtype).model
    config = LlamaConfig(
        vocab_size=4096,
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).to(DTYPES[dtype])


def make_learner(options: argparse.Namespace, layout: str, model: torch.nn.Module) -> Learner:
    learn = LearnOptions(layout=layout, learning_rate=1e-6, kl_weight=0.05 if options.kl else 0.0)
    reference = copy.deepcopy(model).requires_grad_(False) if options.kl else None
    return Learner(model, learn, reference=reference)


def update(learner: Learner) -> float:
    """CPU seconds of one update."""
    tree = benchmark_tree()
    begin = time.process_time()
    learner.update([tree], [random_credit(tree)], torch.Generator())
    return time.process_time() - begin


def peak_megabytes() -> float:
    """Of this process so far (Linux; getrusage would count what the parent held before exec, too)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def memory(options: argparse.Namespace, layout: str) -> float:
    """Peak beyond the loaded model, in MB, of a process that makes one update."""
    command = [sys.executable, __file__, *sys.argv[1:], "--only", layout]
    return float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="", help="folder, hub id or smollm2; default: a random Llama")
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kl", action="store_true", help="with the exact KL to a reference model")
    parser.add_argument("--only", default="", choices=["", *LAYOUTS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load(options.model, options.dtype)
    if options.only:
        learner = make_learner(options, options.only, model)
        before = peak_megabytes()
        update(learner)
        print(peak_megabytes() - before)
        return
    tree = benchmark_tree()
    tokens = {"tree": tree.stored_tokens(), "rows": tree.row_tokens()}
    learners = {layout: make_learner(options, layout, model) for layout in LAYOUTS}
    seconds: dict[str, list[float]] = {layout: [] for layout in LAYOUTS}
    for _ in range(options.repeat + 1):
        for layout, learner in learners.items():
            seconds[layout].append(update(learner))
    medians = {layout: statistics.median(times[1:]) for layout, times in seconds.items()}
    peaks = {layout: memory(options, layout) for layout in LAYOUTS}

    name = options.model or "random Llama"
    print(f"{name}, {sum(p.numel() for p in model.parameters()):,} parameters, {options.dtype}, one thread")
    print(f"{'layout':<8}{'tokens':>8}{'CPU s (median)':>16}{'(all)':>24}{'peak MB':>9}")
    for layout in LAYOUTS:
        spread = f"{min(seconds[layout][1:]):.2f} to {max(seconds[layout][1:]):.2f}"
        print(f"{layout:<8}{tokens[layout]:>8}{medians[layout]:>16.2f}{spread:>24}{peaks[layout]:>9.0f}")
    measured = {"tokens": tokens, "time": medians, "memory": peaks}
    print("rows / tree:", ", ".join(f"{what} {m['rows'] / m['tree']:.2f}" for what, m in measured.items()))


if __name__ == "__main__":
    main()
