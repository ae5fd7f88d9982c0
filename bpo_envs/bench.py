"""``python -m bpo_envs bench ID``: what going back costs in one environment, as in Table 4 of the paper.

Times are medians over random play. A tree has M branch points on its backbone and K continuations of each:
M snapshots and M (K - 1) restores. The share is their part of the time of a tree's rollouts, in which
``--decision-ms`` stands for the policy's time for one decision (0: the environment's own time only, so that
the share is the largest it can be). The break-even c_snap is the time of a snapshot at which resetting and
replaying the steps before each branch point would be as cheap.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from wrappers.fidelity.checks.cost import duration, measure, tree_cost
from wrappers.fidelity.context import Context, Settings
from wrappers.target import target_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("env_id", metavar="ID", help='environment id, or "module:id"')
    parser.add_argument("--branch-points", type=int, default=4, metavar="M", help="on each backbone (4)")
    parser.add_argument("--siblings", type=int, default=4, metavar="K", help="of each branch point (4)")
    parser.add_argument("--prompts", type=int, default=128, metavar="B", help="trees alive at once (128)")
    parser.add_argument(
        "--decision-ms", type=float, default=0.0, metavar="MS", help="of the policy, per step"
    )
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="of random play (10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first episode")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def bench(
    env_id: str,
    *,
    branch_points: int = 4,
    siblings: int = 4,
    prompts: int = 128,
    decision_seconds: float = 0.0,
    episodes: int = 10,
    seed: int = 0,
    budget: float = 3.0,
) -> dict[str, Any]:
    """Measure and reckon; times in seconds, sizes in bytes.

    Raises:
        ValueError: numbers that make no tree.
        RuntimeError: the environment cannot be captured; the message says why.
    """
    if branch_points < 1 or siblings < 2 or prompts < 1 or episodes < 1:
        raise ValueError(
            f"expected M >= 1, K >= 2, B >= 1 and episodes >= 1, got M={branch_points}, K={siblings}, "
            f"B={prompts}, episodes={episodes}"
        )
    settings = Settings(seed=seed, episodes=episodes, budget=budget)
    context = Context(target_of(env_id, {}, (), "auto"), settings)
    context.prepare()
    if context.refusal is not None:
        raise RuntimeError(f"{env_id} cannot be captured: {context.refusal}")
    context.start()
    cost = tree_cost(measure(context), branch_points, siblings, decision_seconds)
    return {
        "env": env_id,
        **cost,
        "B": prompts,
        "storage_bytes": prompts * branch_points * cost["bytes"],
    }


def table(found: dict[str, Any]) -> str:
    """The row of the table, as text."""
    rows = [
        ("c_snap", duration(found["c_snap_seconds"])),
        ("c_restore", duration(found["c_restore_seconds"])),
        ("bytes of a snapshot", f"{found['bytes']:.0f}"),
        ("a step", duration(found["step_seconds"])),
        ("a reset", duration(found["reset_seconds"])),
        ("steps of an episode", f"{found['steps_per_episode']:.1f}"),
        (f"a tree's rollouts (M={found['M']}, K={found['K']})", duration(found["rollout_seconds"])),
        ("share of going back", f"{100 * found['share_of_rollout']:.2f} %"),
        ("break-even c_snap", duration(found["break_even_c_snap_seconds"])),
        (f"storage of {found['B']} x {found['M']} snapshots", f"{found['storage_bytes'] / 1e6:.2f} MB"),
    ]
    return "\n".join([found["env"], *(f"  {name:<36}{value:>14}" for name, value in rows)])


def main(options: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    found = bench(
        options.env_id,
        branch_points=options.branch_points,
        siblings=options.siblings,
        prompts=options.prompts,
        decision_seconds=options.decision_ms / 1000,
        episodes=options.episodes,
        seed=options.seed,
    )
    print(json.dumps(found, indent=2) if options.json else table(found))
    return 0
