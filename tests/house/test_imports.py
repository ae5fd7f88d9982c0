"""Imports run one way: wrappers knows nothing of ours, bpo_envs knows wrappers, bpo_train knows both.

`bpo_train` names no benchmark either: it sees ids, observations and infos.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = {"wrappers", "bpo_envs", "bpo_train"}
MAY_IMPORT = {
    "wrappers": {"wrappers"},
    "bpo_envs": {"bpo_envs", "wrappers"},
    "bpo_train": OURS,
}
BENCHMARKS = re.compile("webshop|alfworld|swe[-_]?bench", re.IGNORECASE)


def imported(path: Path) -> set[str]:
    """Top-level names of ours that a module imports, anywhere in its code."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return {name.split(".")[0] for name in names} & OURS


@pytest.mark.parametrize("package", sorted(OURS))
def test_imports_run_one_way(package):
    wrong = {
        str(path.relative_to(ROOT)): sorted(imported(path) - MAY_IMPORT[package])
        for path in sorted((ROOT / package).rglob("*.py"))
        if imported(path) - MAY_IMPORT[package]
    }
    assert wrong == {}


def test_the_trainer_names_no_benchmark():
    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "bpo_train").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if BENCHMARKS.search(line)
    ]
    assert named == []
