"""mypy has nothing to say about the three packages."""

from __future__ import annotations

import subprocess
import sys


def test_mypy_is_content(root):
    run = subprocess.run([sys.executable, "-m", "mypy"], cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"
