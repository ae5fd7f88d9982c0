"""The Makefile's plan, by dry runs: what it would install where, and that a second call installs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from support import need

# In order of installation, as the Makefile touches them.
STAMPS = [".stamp-torch", ".stamp-train", ".stamp-dev"]


@pytest.fixture
def plan(root, tmp_path):
    need(shutil.which("make") is not None, "make", "install your system's package `make`")

    def dry_run(*arguments: str) -> str:
        command = ["make", "--dry-run", f"VENV={tmp_path}", "WORKERS=3", "PYTEST_ARGS=", *arguments]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        return subprocess.run(command, cwd=root, env=clean, capture_output=True, text=True, check=True).stdout

    return dry_run


def test_run_installs_the_trainer_only(plan):
    steps = plan("run", "ARGS=--seed 1")
    assert "-e '.[train]'" in steps
    assert "dev]" not in steps
    assert steps.rstrip().endswith("/bin/python -m bpo_train --seed 1")


@pytest.mark.parametrize(("target", "option"), [("test", ""), ("test-full", " --full")])
def test_tests_install_everything(plan, target, option):
    steps = plan(target)
    assert "-e '.[all,dev]'" in steps
    assert f"-m pytest -n 3{option}" in steps


def test_without_a_gpu_torch_is_the_pinned_cpu_build(plan, root):
    pinned = next(
        line for line in (root / "constraints.txt").read_text().splitlines() if line.startswith("torch==")
    )
    assert f"'{pinned}+cpu'" in plan("run", "GPU=")


def test_with_a_gpu_torch_comes_within_the_range(plan):
    steps = plan("run", "GPU=/dev/nvidia0")
    assert "+cpu" not in steps
    assert "grep -v '^torch==' constraints.txt" in steps


def test_a_second_call_installs_nothing(plan, tmp_path):
    for stamp in STAMPS:
        (tmp_path / stamp).touch()
    for target in ("run", "test", "test-full"):
        assert "pip" not in plan(target)


def test_make_calls_no_system_package_manager(root):
    text = (root / "Makefile").read_text()
    assert not any(tool in text for tool in ("apt", "dpkg", "sudo", "yum"))
