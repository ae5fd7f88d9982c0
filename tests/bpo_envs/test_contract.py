"""Every id of the suite keeps the snapshot contract."""

from __future__ import annotations

import pytest

import bpo_envs
from wrappers import SnapshotContract, check_fidelity


class TestWebShop(SnapshotContract):
    env_id = "bpo/WebShop-v0"
    modules = ("bpo_envs",)


@pytest.mark.parametrize("env_id", [env_id for env_id in bpo_envs.ENV_IDS if env_id != TestWebShop.env_id])
def test_the_others(env_id):
    report = check_fidelity(env_id, modules=["bpo_envs"], quick=True)
    assert report.passed, report


@pytest.mark.full
@pytest.mark.parametrize("env_id", bpo_envs.ENV_IDS)
def test_at_length(env_id):
    report = check_fidelity(env_id, modules=["bpo_envs"])
    assert report.passed, report
