"""The commands as a user gives them, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bpo_envs.assets import asset
from small_run import arguments, numbers, random_policy

HELPERS = Path(__file__).parents[1] / "helpers"


def environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(HELPERS)]), "OMP_NUM_THREADS": "1"}


def start(root: Path, folder: Path, *args: str) -> subprocess.Popen[str]:
    """Start ``python -m bpo_train`` in a folder."""
    command = [sys.executable, "-m", "bpo_train", *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(root), stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str], status: int = 0) -> tuple[str, str]:
    """What it wrote to stdout and stderr."""
    out, err = process.communicate(timeout=900)
    assert process.returncode == status, err
    return out, err


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    random_policy().save(folder)
    return folder


@pytest.fixture(scope="module")
def runs(root, model, tmp_path_factory) -> tuple[Path, str]:
    """A folder with the runs `one` and `two`, made by the same command, and what the first one said."""
    folder = tmp_path_factory.mktemp("runs")
    processes = [start(root, folder, *arguments(model, Path(name))) for name in ("one", "two")]
    (out, err), _ = map(finish, processes)
    assert err == ""
    return folder, out


def records(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [numbers(json.loads(line)) for line in lines]


FILES = ("manifest.json", "metrics.jsonl", "start.json", "summary.json", "checkpoint/model.safetensors")


def test_a_run_writes_its_folder_and_nothing_beside_it(runs):
    folder, _ = runs
    assert sorted(path.name for path in folder.iterdir()) == ["one", "two"]
    assert [name for name in FILES if not (folder / "one" / name).is_file()] == []


def test_a_run_says_what_it_found(runs):
    said = " ".join(runs[1].split())
    for part in ("training 2/2", "before: success", "after: success", "95 % interval", "run folder: one"):
        assert part in said


def test_the_summary_is_as_promised(runs):
    folder, _ = runs
    summary = json.loads((folder / "one" / "summary.json").read_text())
    outcome = {"success", "greedy_success", "score", "n"}
    assert {name: set(part) for name, part in summary.items() if name != "seconds"} == {
        "start": outcome,
        "end": outcome,
        "difference": {"mean", "low", "high"},
    }
    assert summary["seconds"] > 0


def test_two_processes_with_one_seed_find_the_same_numbers(runs):
    folder, _ = runs
    assert records(folder / "one") == records(folder / "two")
    weights = [(folder / n / "checkpoint" / "model.safetensors").read_bytes() for n in ("one", "two")]
    assert weights[0] == weights[1]


def test_a_taken_folder_is_refused_untouched(root, runs, model):
    folder, _ = runs
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    _, err = finish(start(root, folder, *arguments(model, Path("one"))), status=2)
    assert err == "error: one holds a run already; choose another --output, or remove it\n"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_mistyped_command_is_answered_at_once(root, tmp_path):
    _, err = finish(start(root, tmp_path, "trian"), status=2)
    assert err == "error: unknown command 'trian'; expected one of train, sft, eval\n"


@pytest.mark.full
@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 130)])
def test_a_killed_run_resumes_to_the_same_numbers(root, model, tmp_path, number, status):
    finish(start(root, tmp_path, *arguments(model, Path("whole"), updates=40)))
    process = start(root, tmp_path, *arguments(model, Path("run"), updates=40))
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("training 6/40"))
    process.send_signal(number)
    finish(process, status)
    finish(start(root, tmp_path, "--resume", "run"))
    assert records(tmp_path / "run") == records(tmp_path / "whole")
    weights = [(tmp_path / n / "checkpoint" / "model.safetensors").read_bytes() for n in ("run", "whole")]
    assert weights[0] == weights[1]


@pytest.mark.full
def test_the_demo_learns_to_shop(root, tmp_path):
    # measured: two thirds of the whole run's gain come in its first eight updates, 20 points and more
    try:
        asset("policies", "webshop-compact")
    except FileNotFoundError:
        pytest.skip("needs assets/policies/webshop-compact: make it with `python -m bpo_train sft`")
    finish(start(root, tmp_path, "--updates", "10", "--eval-tasks", "200", "--output", "run"))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["difference"]["mean"] >= 0.10
    assert summary["difference"]["low"] > 0
