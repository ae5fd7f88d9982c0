"""A wheel holds everything that a checkout offers: packages, type markers, recipes, assets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

NOT_SOURCE = shutil.ignore_patterns(
    ".*", "*.egg-info", "build", "dist", "runs", "shared", "tests", "__pycache__"
)
USE = """
import bpo_envs, bpo_envs.assets, gymnasium, pathlib, sys
site = pathlib.Path(sys.argv[1])
assert site in pathlib.Path(bpo_envs.__file__).parents, bpo_envs.__file__
assert bpo_envs.assets.asset("webshop", "v1", "meta.json").is_relative_to(site)
for env_id in bpo_envs.ENV_IDS:
    env = gymnasium.make(env_id)
    print(env.reset(seed=0)[1]["task_id"])
"""


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    source = tmp_path_factory.mktemp("source") / "bpo-envs"
    shutil.copytree(root, source, ignore=NOT_SOURCE)
    out = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True)
    return next(out.glob("bpo_envs-*.whl"))


@pytest.mark.full
def test_wheel_holds_all_packages_and_data(root, wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    code_and_data = {
        path.relative_to(root).as_posix()
        for package in ("wrappers", "bpo_envs", "bpo_train")
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assets = {
        f"bpo_envs/_assets/{path.relative_to(root / 'assets').as_posix()}"
        for path in (root / "assets").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert (code_and_data | assets) - names == set()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
        "wrappers",
        "bpo_envs",
        "bpo_train",
    }


@pytest.mark.full
def test_installed_wheel_makes_every_environment(wheel, tmp_path):
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)],
        check=True,
    )
    run = subprocess.run(
        [sys.executable, "-c", USE, str(site)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
