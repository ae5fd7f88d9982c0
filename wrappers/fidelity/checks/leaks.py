"""leaks: equal cycles, repeated, use no more memory, descriptors, threads, processes or disk.

A cycle is a seeded reset, some steps, a snapshot, a restore, the steps again. It is repeated in one instance,
and with a new instance each time. After a warm-up the amounts are read at the start, in the middle and at the
end. What grows in both halves is suspected; what still grows after many more cycles, when a bounded history
would be full, leaks.
"""

from __future__ import annotations

import copy
import gc
import os
import threading
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...snapshot_env import SnapshotEnv
from ..context import Context, Finding
from ..files import watch_files, written
from ..held import most_grown, parts_held
from ..oracle import now
from ..program import literal, printable
from ..running import children_of, running_processes

_STEPS = 12  # of a cycle
_WARM_UP = 130  # cycles; RecordEpisodeStatistics remembers 100 episodes
_CONFIRM = 4000  # more cycles before anything is accused

# Python and numpy keep some freed memory for reuse, which fills up slowly: a few bytes a cycle are no leak,
# and what is accused must have grown by tens of kilobytes. The process's own memory is coarser still. What an
# environment holds is counted exactly.
_LEAST_A_CYCLE = {"memory": 24.0, "resident memory": 2048.0, "parts held": 0.05}
_LEAST = {"memory": 2048.0, "resident memory": 1e6}
_SURELY = {"memory": 32768.0, "resident memory": 2e6}


@dataclass
class _Growth:
    name: str
    per_cycle: float
    cycles: int
    where: str = ""

    def __str__(self) -> str:
        return f"{self.name} +{self.per_cycle:.4g} a cycle" + (f" ({self.where})" if self.where else "")


def check(context: Context) -> Finding:
    watch_files(context.private)
    script = min((episode.events for episode in context.episodes), key=len)[: 1 + _STEPS]
    cycles = {
        "in one instance": _same_instance(context, script),
        "with a new instance each time": _new_instances(context, script),
    }
    texts = []
    tracemalloc.start()
    try:
        for name, cycle in cycles.items():
            try:
                found = _watch(context, cycle)
            finally:
                cycle.close()
            if isinstance(found, list):
                return _finding(context, name, cycle, found, script)
            texts.append(f"{found} cycles {name}")
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    return Finding(" and ".join(texts) + ": nothing grows")


@dataclass
class _Cycle:
    run: Callable[[], None]
    close: Callable[[], None]
    env: SnapshotEnv


def _same_instance(context: Context, script: list) -> _Cycle:
    env = context.target.make()
    return _Cycle(lambda: _cycle(context, env, script), env.close, env)


def _new_instances(context: Context, script: list) -> _Cycle:
    def run() -> None:
        env = context.target.make()
        _cycle(context, env, script)
        env.close()

    env = context.target.make()
    return _Cycle(run, env.close, env)


def _cycle(context: Context, env: SnapshotEnv, script: list) -> None:
    seed, options = script[0].value
    env.reset(seed=seed, options=copy.deepcopy(options))
    half = len(script) // 2
    _steps(env, script[1:half])
    if context.refusal is not None:
        _steps(env, script[half:])
        return
    with env.snapshot() as snapshot:
        _steps(env, script[half:])
        env.restore(snapshot)
        _steps(env, script[half:])


def _steps(env: SnapshotEnv, script: list) -> None:
    for event in script:
        if event.kind == "step":
            _, _, terminated, truncated, _ = env.step(copy.deepcopy(event.value))
            if terminated or truncated:
                return


# --- measuring -------------------------------------------------------------------------------------------


def _watch(context: Context, cycle: _Cycle) -> list[_Growth] | int:
    """Growths that persist, or the number of cycles that showed none."""
    begin = now()
    cycle.run()
    cost = max(now() - begin, 1e-6)
    share = 0.5 * context.settings.budget
    warm_up = max(2, min(_WARM_UP, int(share / cost)))
    begin = now()
    for _ in range(warm_up):
        cycle.run()
    cost = (now() - begin) / warm_up  # the first one made and loaded what the others reuse
    half = max(3, min(150, int(share / cost)))
    gc.collect()
    gc.freeze()
    suspected = _halves(cycle, half, _LEAST)
    if not suspected:
        return warm_up + 2 * half
    half = max(half, min(_CONFIRM, int((0.1 + context.settings.budget) / cost)))
    for _ in range(half):
        cycle.run()
    before, held = tracemalloc.take_snapshot(), parts_held(cycle.env)
    growths = _halves(cycle, half, _SURELY)
    for growth in growths:
        if growth.name == "memory":
            growth.where = _most(before, tracemalloc.take_snapshot())
        elif growth.name == "parts held":
            growth.where = most_grown(held, parts_held(cycle.env))
    return growths or warm_up + 5 * half


def _halves(cycle: _Cycle, half: int, least: Mapping[str, float]) -> list[_Growth]:
    """What grows in two runs of `half` cycles each: by `least` or more in the second, and not much slower."""
    readings = [_amounts(cycle.env)]
    for _ in range(2):
        for _ in range(half):
            cycle.run()
        readings.append(_amounts(cycle.env))
    start, middle, end = readings
    growths = []
    for name in start:
        first, second = middle[name] - start[name], end[name] - middle[name]
        enough = max(least.get(name, 1.0), _LEAST_A_CYCLE.get(name, 0.0) * half)
        if first > 0 and second >= enough and second >= 0.5 * first:
            growths.append(_Growth(name, (first + second) / (2 * half), 2 * half))
    if any(growth.name == "memory" for growth in growths):  # the same growth, seen twice
        growths = [growth for growth in growths if growth.name != "resident memory"]
    return growths


def _most(before: tracemalloc.Snapshot, after: tracemalloc.Snapshot) -> str:
    """The line that allocated most of what was added, ours left aside."""
    ours = str(Path(__file__).resolve().parents[1])
    for statistic in after.compare_to(before, "lineno"):
        frame = statistic.traceback[0]
        if not frame.filename.startswith(ours) and "tracemalloc" not in frame.filename:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def _amounts(env: SnapshotEnv) -> dict[str, float]:
    gc.collect()
    memory = float(tracemalloc.get_traced_memory()[0])
    files = [path.stat().st_size for path in written() if path.exists()]
    return {
        "memory": memory,
        "parts held": float(sum(parts_held(env).values())),
        "resident memory": _resident(),
        "descriptors": float(_count("/proc/self/fd")),
        "threads": float(threading.active_count()),
        "child processes": float(len(running_processes()) + _zombies()),
        "files": float(len(files)),
        "disk": float(sum(files)),
    }


def _count(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir()) if Path(folder).is_dir() else 0


def _resident() -> float:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0.0
    return float(int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))


def _zombies() -> int:
    """Children that ended and that nobody waited for."""
    count = 0
    for child in children_of(os.getpid()):
        stat = Path(f"/proc/{child}/stat")
        count += stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    return count


# --- telling ---------------------------------------------------------------------------------------------


def _finding(context: Context, name: str, cycle: _Cycle, growths: list[_Growth], script: list) -> Finding:
    detail = f"{name}: {', '.join(map(str, growths))} over {growths[0].cycles} equal cycles"
    actions = [printable(event.value) for event in script[1:]]
    lines = ["for _ in range(1000):", f"    a.reset(seed={script[0].value[0]})"]
    lines += [f"    a.step({literal(event.value)})" for event in script[1:]]
    if context.refusal is None:
        lines += ["    a.restore(a.snapshot())"]
    lines.insert(1 if "new" in name else 0, ("    " if "new" in name else "") + "a = make()")
    if "new" in name:
        lines.append("    a.close()")
    reproduce: dict[str, Any] = {
        "seed": script[0].value[0],
        "actions": actions,
        "growth_per_cycle": {growth.name: growth.per_cycle for growth in growths},
        "code": "\n".join(lines) + f"  # {detail}",
    }
    return Finding(detail, False, reproduce=reproduce)
