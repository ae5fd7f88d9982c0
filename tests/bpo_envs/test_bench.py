"""`python -m bpo_envs bench ID`: the cost of going back."""

from __future__ import annotations

import json

import pytest

from bpo_envs.__main__ import main
from bpo_envs.bench import bench
from wrappers.fidelity.checks.cost import tree_cost

MEASURED = {
    "reset_seconds": 2.0,
    "step_seconds": 1.0,
    "c_snap_seconds": 0.5,
    "c_restore_seconds": 0.25,
    "bytes": 100.0,
    "steps_per_episode": 10.0,
}


def test_the_cost_of_a_tree_by_hand():
    """M = 2, K = 3: 2 snapshots and 4 restores; 10 steps of the backbone and 4 half episodes of 5 steps."""
    cost = tree_cost(MEASURED, branch_points=2, siblings=3)
    going_back = 2 * 0.5 + 4 * 0.25
    rollouts = 2.0 + 10 + 4 * 5
    assert cost["rollout_seconds"] == rollouts
    assert cost["share_of_rollout"] == going_back / (going_back + rollouts)
    # Each of the 2 siblings of a branch point would reset (2 s) and replay 5 steps instead of a restore.
    assert cost["break_even_c_snap_seconds"] == 2 * (2.0 + 5.0 - 0.25)


def test_deciding_takes_its_part_of_the_rollout():
    cost = tree_cost(MEASURED, branch_points=2, siblings=3, decision_seconds=1.0)
    assert cost["rollout_seconds"] == 2.0 + 30 * 2.0


def test_storage_is_that_of_all_snapshots_of_a_batch():
    found = bench("bpo_envs:bpo/WebShop-v0", branch_points=4, prompts=128, episodes=2, budget=0.2)
    assert found["storage_bytes"] == 128 * 4 * found["bytes"] > 0


def test_the_command_prints_a_table_or_json(capsys):
    assert main(["bench", "bpo/KeyCorridor-v0", "--episodes", "2"]) == 0
    assert "break-even c_snap" in capsys.readouterr().out
    assert main(["bench", "bpo/KeyCorridor-v0", "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["K"] == 4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["bpo/Nothing-v0"], "Nothing"),
        (["bpo/WebShop-v0", "--siblings", "1"], "K >= 2"),
        (["GymV21Environment-v0"], "bench:"),
    ],
)
def test_what_cannot_be_measured_is_an_error(arguments, complaint, capsys):
    assert main(["bench", *arguments]) == 1
    assert complaint in capsys.readouterr().err
