"""`import bpo_envs` registers the ids, cheaply and any number of times."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import gymnasium as gym
import pytest

import bpo_envs

HEAVY = [
    "bs4",
    "rapidfuzz",
    "scipy",
    "spacy",
    "torch",
    "transformers",
    "wrappers",
    "bpo_envs.webshop",
]


def python(code: str) -> str:
    """Output of ``code`` in a fresh interpreter that sees the same packages."""
    setup = f"import sys; sys.path[:0] = {sys.path!r}\n"
    run = subprocess.run([sys.executable, "-c", setup + code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_import_loads_nothing_heavy():
    loaded = python(
        "import gymnasium; before = set(sys.modules); import bpo_envs\n"
        f"print([name for name in {HEAVY} if name in sys.modules and name not in before])\n"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('bpo_envs')))"
    )
    # Nothing at all beyond what Gymnasium's own import loads.
    assert loaded.split("\n") == ["[]", "[]"]


def test_module_prefix_needs_no_import():
    code = "import gymnasium; print(type(gymnasium.make('bpo_envs:bpo/WebShop-v0')).__name__)"
    assert python(code) == "SnapshotEnv"


@pytest.mark.parametrize("env_id", bpo_envs.ENV_IDS)
def test_every_id_has_snapshots_outermost_and_no_vector_entry_point(env_id):
    spec = gym.spec(env_id)
    assert [w.entry_point for w in spec.additional_wrappers] == ["wrappers.snapshot_env:SnapshotEnv"]
    assert spec.vector_entry_point is None
    assert not spec.nondeterministic
    assert not spec.disable_env_checker
    assert gym.envs.registration.EnvSpec.from_json(spec.to_json()) == spec


def test_webshop_ends_after_fifty_steps():
    assert gym.spec("bpo/WebShop-v0").max_episode_steps == 50


def test_reloading_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(bpo_envs)
    assert "bpo/WebShop-v0" in gym.registry
