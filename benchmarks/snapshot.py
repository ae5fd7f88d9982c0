"""What going back costs, beside a step, a reset and the ways without snapshots, measured in one run.

    python benchmarks/snapshot.py [ENV_ID] [--moments 300] [--forks 1000] [--seed 0] [--json]

Random play (admissible actions where the info lists them) visits a number of moments. At each one a
snapshot is taken and restored, written and read, and compared with its two peers: reset and replay of the
actions so far, and a deep copy of the environment. A fork is another instance, made and restored from a
snapshot; its memory is the growth of the process divided by their number (what instances share, such as a
catalogue, is there already). An id of another package is given as "module:id".
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

import bpo_envs  # noqa: F401 (registers the suite's ids)
from wrappers import Snapshot, SnapshotEnv

# microseconds, bytes and MB that the suite's WebShop is to stay under on two cores
TARGETS = {"step": 200, "snapshot + restore": 50, "bytes": 1000, "forks_mb": 50}
DEEP_COPIES = 5  # few: where an environment does not share its data they take seconds each


class Stopwatch:
    """Collects microseconds by name."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        self.times.setdefault(name, []).append((time.perf_counter() - start) * 1e6)
        return result

    def summary(self) -> dict[str, dict[str, float]]:
        return {
            name: {"median": quantile(t, 0.5), "p95": quantile(t, 0.95)} for name, t in self.times.items()
        }


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def resident_mb() -> float:
    """Memory of this process; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def make(env_id: str) -> SnapshotEnv:
    env = gym.make(env_id)
    return env if isinstance(env, SnapshotEnv) else SnapshotEnv(env)


def choose(env: gym.Env, info: dict[str, Any], chance: random.Random) -> Any:
    admissible = info.get("admissible_actions")
    return chance.choice(list(admissible)) if admissible else env.action_space.sample()


def back_and_forth(env: SnapshotEnv, clock: Stopwatch) -> Snapshot:
    """Takes and restores a snapshot of the present moment, timed apart and together."""
    snapshot = clock("snapshot", env.snapshot)
    clock("restore", lambda: env.restore(snapshot))
    clock("snapshot + restore", lambda: env.restore(env.snapshot()))
    data = clock("to bytes", snapshot.to_bytes)
    clock("from bytes", lambda: Snapshot.from_bytes(data))
    return snapshot


def replay(env: gym.Env, seed: int, actions: list[Any]) -> None:
    env.reset(seed=seed)
    for action in actions:
        env.step(action)


def play(env: SnapshotEnv, peer: gym.Env, moments: int, seed: int, clock: Stopwatch) -> list[Snapshot]:
    """Episodes of random play; every moment but the first of an episode is measured."""
    chance, snapshots = random.Random(seed), []
    env.action_space.seed(seed)
    while len(snapshots) < moments:
        seed += 1
        _, info = clock("reset", lambda seed=seed: env.reset(seed=seed))
        actions, over = [], False
        while not over and len(snapshots) < moments:
            action = choose(env, info, chance)
            actions.append(action)
            _, _, terminated, truncated, info = clock("step", lambda action=action: env.step(action))
            over = terminated or truncated
            snapshots.append(back_and_forth(env, clock))
            clock("peer: reset and replay", lambda seed=seed, actions=actions: replay(peer, seed, actions))
    return snapshots


def deep_copies(env: SnapshotEnv, clock: Stopwatch) -> str | None:
    """Times deep copies of the environment. Returns why it cannot be copied, or None."""
    env.reset(seed=0)
    try:
        for _ in range(DEEP_COPIES):
            clock("peer: deepcopy", lambda: copy.deepcopy(env.unwrapped))
    except Exception as error:
        return repr(error)
    return None


def live_forks(env_id: str, snapshots: list[Snapshot], number: int, clock: Stopwatch) -> float:
    """Growth of the process in MB by `number` instances alive at once, each restored from a snapshot."""
    forks = []
    gc.collect()
    before = resident_mb()
    for index in range(number):
        fork = clock("make", lambda: make(env_id))
        clock("first restore", lambda fork=fork, index=index: fork.restore(snapshots[index % len(snapshots)]))
        forks.append(fork)
    gc.collect()
    return resident_mb() - before


def measure(env_id: str, moments: int, forks: int, seed: int) -> dict[str, Any]:
    env, peer = make(env_id), gym.make(env_id)
    # Fills caches, which is no part of a step; and forks are weighed before the peers leave memory to reuse.
    first = play(env, peer, min(moments, 20), seed, Stopwatch())
    clock = Stopwatch()
    forks_mb = live_forks(env_id, first, forks, clock)
    snapshots = play(env, peer, moments, seed, clock)
    no_copy = deep_copies(env, clock)
    sizes = [float(snapshot.size) for snapshot in snapshots]
    times = clock.summary()
    pair = times["snapshot + restore"]["median"]
    ratios = {
        name: times[name]["median"] / pair for name in times if name.startswith("peer") or name == "step"
    }
    return {
        "env": env_id,
        "moments": len(snapshots),
        "microseconds": times,
        "bytes": {"median": statistics.median(sizes), "max": max(sizes)},
        "forks": forks,
        "forks_mb": forks_mb,
        "times_of_snapshot_and_restore": ratios,
        "deepcopy_failed": no_copy,
    }


def table(found: dict[str, Any]) -> str:
    lines = [f"{found['env']}, {found['moments']} moments of random play", ""]
    lines.append(f"{'microseconds':<26}{'median':>12}{'p95':>12}{'to reach':>12}")
    for name, time_of in found["microseconds"].items():
        target = TARGETS.get(name, "")
        lines.append(f"{name:<26}{time_of['median']:>12.1f}{time_of['p95']:>12.1f}{target:>12}")
    lines.append("")
    for name, ratio in found["times_of_snapshot_and_restore"].items():
        lines.append(f"{name} takes {ratio:.3g} times as long as snapshot + restore")
    if found["deepcopy_failed"]:
        lines.append(f"deepcopy fails: {found['deepcopy_failed']}")
    size = found["bytes"]
    lines.append(
        f"bytes written: median {size['median']:.0f}, largest {size['max']:.0f} (to reach {TARGETS['bytes']})"
    )
    target = f"to reach {TARGETS['forks_mb']} for 1000"
    lines.append(f"{found['forks']} live forks: {found['forks_mb']:.1f} MB ({target})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="What snapshot and restore cost.")
    parser.add_argument("env_id", nargs="?", default="bpo/WebShop-v0", metavar="ENV_ID")
    parser.add_argument("--moments", type=int, default=300, help="moments of play that are measured")
    parser.add_argument("--forks", type=int, default=1000, help="instances alive at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    found = measure(options.env_id, options.moments, options.forks, options.seed)
    print(json.dumps(found, indent=2) if options.json else table(found))


if __name__ == "__main__":
    main()
