"""The fidelity self-check: does going back in this environment work?

`check_fidelity` runs every check of docs/snapshots.md on an environment, each in a process of its own. How
the parts fit: `target` makes environments; `oracle` knows what they answer when nobody goes back; `program`
runs what a check does and compares; `context` gives checks recorded episodes and shortens what fails;
`checks` are the checks; `worker` runs them in processes; `report` is the result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from ..target import CannotMake, dump, process_environment, target_of
from .checks import CHECKS
from .compare import DEFAULT_IGNORE
from .context import Settings
from .oracle import Policy, now
from .report import CheckResult, FidelityReport

__all__ = [
    "CHECKS",
    "DEFAULT_IGNORE",
    "CannotMake",
    "CheckResult",
    "FidelityReport",
    "Settings",
    "check_fidelity",
]

QUICK: dict[str, Any] = {"episodes": 4, "budget": 0.12, "time_limit": 20.0, "hash_seeds": (1, 2)}
FULL: dict[str, Any] = {"episodes": 16, "budget": 2.0, "time_limit": 60.0, "hash_seeds": (1, 2, 3, 5)}
Progress = Callable[[str, "CheckResult | None"], None]


def check_fidelity(
    env: str | Callable[..., gym.Env],
    *,
    kwargs: Mapping[str, Any] | None = None,
    modules: Sequence[str] = (),
    strategy: str = "auto",
    episodes: int | None = None,
    seed: int = 0,
    quick: bool = False,
    checks: Sequence[str] | None = None,
    policy: Policy | None = None,
    options: Mapping[str, Any] | None = None,
    normalize: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ignore: Sequence[str] = DEFAULT_IGNORE,
    nondeterministic: bool | None = None,
    time_limit: float | None = None,
    memory_limit: int = 4 << 30,
    branch_points: int = 4,
    siblings: int = 4,
    progress: Progress | None = None,
) -> FidelityReport:
    """Looks for violations of the snapshot contract (docs/snapshots.md) in an environment.

    Args:
        env: an id, or a function that makes the environment (a class will do); it is called many times, in
            several processes.
        kwargs: for `gymnasium.make` or for the function.
        modules: imported first, for what they register.
        strategy: of the SnapshotEnv that is put around it, see docs/snapshots.md.
        episodes: recorded episodes that the checks play.
        seed: of the first one; the others follow, counting up.
        quick: seconds instead of up to a minute, with fewer cases for each check.
        checks: names of those to run, in place of all of `CHECKS`.
        policy: (observation, info, env) -> action. None: random actions, from info["admissible_actions"],
            under info["action_mask"], or from the action space.
        options: given to every reset.
        normalize: applied to every answer (a dict with observation, info, reward, terminated, truncated)
            before answers are compared.
        ignore: patterns of fields left out of comparisons ("info.episode.t"), in place of the default.
        nondeterministic: whether answers are random by intent; None: as the environment's spec declares.
        time_limit: seconds for one check; None: by the speed of the environment.
        memory_limit: bytes that one check may allocate.
        branch_points: M of the tree whose cost is told.
        siblings: K of that tree.
        progress: called with a check's name when it starts (and None), and when it ends (and its result).

    Raises:
        CannotMake: the environment could not be imported, made or reset.
        TypeError, ValueError: arguments that make no sense, an unknown check among them.
    """
    if not hasattr(os, "fork"):
        raise CannotMake("the self-check runs its checks in forked processes: it needs Linux or macOS")
    names = list(CHECKS if checks is None else checks)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise ValueError(f"unknown check {unknown[0]!r}, expected some of {', '.join(CHECKS)}")
    target = target_of(env, kwargs or {}, modules, strategy)
    given = {"episodes": episodes, "time_limit": time_limit}
    settings = Settings(
        seed=seed,
        policy=policy,
        options=options,
        normalize=normalize,
        ignore=tuple(ignore),
        nondeterministic=nondeterministic,
        memory_limit=memory_limit,
        branch_points=branch_points,
        siblings=siblings,
        slowness=40.0 if time_limit is None else 0.0,
        **{
            **(QUICK if quick else FULL),
            **{name: value for name, value in given.items() if value is not None},
        },
    )
    report = FidelityReport(target.name, "none", [])
    left_out: set[str] = set()
    for message in _messages(dump((target, settings, names))):
        if message["event"] == "broken":
            raise CannotMake(f"{target.name}: {message['error']}")
        if message["event"] == "prepared":
            report.capability = message["capability"]
        elif message["event"] == "start" and progress:
            progress(message["check"], None)
        elif message["event"] == "result":
            result = _result(message)
            report.checks.append(result)
            report.cost.update(message.get("data") or {})
            left_out.update(message.get("ignored") or ())
            if progress:
                progress(result.name, result)
    report.ignored = _ignored(settings, left_out)
    return report


def _result(message: dict[str, Any]) -> CheckResult:
    return CheckResult(
        name=message["check"],
        passed=message["passed"],
        detail=message["detail"],
        skipped=message.get("skipped", False),
        reproduce=message.get("reproduce"),
        seconds=message["seconds"],
    )


def _ignored(settings: Settings, left_out: set[str]) -> list[str]:
    ignored = list(settings.ignore)
    if settings.normalize is not None:
        ignored.append(f"what {getattr(settings.normalize, '__qualname__', 'normalize')} takes away")
    return ignored + [f"{path} (objects without equality)" for path in sorted(left_out)]


def _messages(job: bytes) -> Any:
    """Starts a worker on a job and yields its messages as they come."""
    with tempfile.TemporaryDirectory(prefix="fidelity-") as name:
        folder = Path(name)
        (folder / "job").write_bytes(job)
        results, log = folder / "results", folder / "log"
        results.touch()
        variables = {**process_environment(0), "TMPDIR": str(folder)}
        for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            variables[threads] = "1"  # idle threads of numeric libraries would make forks unsafe
        with log.open("wb") as errors:
            worker = subprocess.Popen(
                [sys.executable, "-m", "wrappers.fidelity.worker", str(folder / "job"), str(results)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=subprocess.STDOUT,
            )
        try:
            yield from _follow(worker, results)
            if worker.returncode != 0:
                lines = log.read_text(errors="replace").strip().splitlines()
                raise CannotMake(lines[-1] if lines else f"the worker ended with status {worker.returncode}")
        finally:
            worker.kill()
            worker.wait()


def _follow(worker: subprocess.Popen, results: Path) -> Any:
    with results.open(encoding="utf-8") as lines:
        begin = now()
        partial = ""
        while True:
            ended = worker.poll() is not None
            partial += lines.readline()
            if partial.endswith("\n"):
                yield json.loads(partial)
                partial = ""
            elif ended:
                return
            else:
                try:
                    worker.wait(0.02 if now() - begin > 1 else 0.005)
                except subprocess.TimeoutExpired:
                    continue
