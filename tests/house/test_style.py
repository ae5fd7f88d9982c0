"""Ruff has nothing to say: lint and format, over everything but the shipped assets."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff_is_content(root, command):
    run = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "."], cwd=root, capture_output=True, text=True
    )
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"
