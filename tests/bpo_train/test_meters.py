"""A batch's numbers on two small trees, counted by hand."""

from __future__ import annotations

import pytest

from bpo_train.credit import TreeCredit
from bpo_train.meters import batch_metrics
from bpo_train.tree import Branch, BranchPoint, Decision, RolloutTree


def decision(context, action, entropy, reward=0.0, cut=False) -> Decision:
    return Decision([0] * context, [0] * action, [0.0] * action, [entropy] * action, "a", reward, cut)


@pytest.fixture
def metrics():
    """One tree with a sibling at its second decision and an extra backbone; one lone backbone."""
    tree = RolloutTree("one")
    tree.branches = [
        Branch(None, 0, [decision(5, 2, 1.0), decision(3, 1, 2.0, reward=0.5)], "terminated", 0.5),
        Branch(0, 1, [decision(0, 4, 3.0, reward=0.5, cut=True)], "context", 1.0, True),
        Branch(0, 0, [decision(0, 1, 0.0, reward=1.0)], "terminated", 1.0, True),
    ]
    tree.branch_points = [BranchPoint(0, 1, [1]), BranchPoint(0, 0, [2], scheduled=False)]
    lone = RolloutTree("two")
    lone.branches = [Branch(None, 0, [decision(7, 1, 4.0)], "step_limit", 0.25)]
    credits = [
        TreeCredit([[0.0, 0.2], [-0.11], [0.1]], [[1.0, 1.0], [1.0], [1.0]]),
        TreeCredit([[0.0]], [[1.0]]),
    ]
    return batch_metrics([tree, lone], credits)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("success", 1 / 3),  # of three rollouts from the root; the fork, though won, does not count
        ("score", (0.5 + 1.0 + 0.25) / 3),
        ("return", (0.5 + 1.0 + 0.0) / 3),
        ("entropy", (1 + 2 + 3 + 0 + 4) / 5),  # at the first token of every decision
        ("nondegenerate_steps", 2 / 5),  # 0.2 and -0.11; 0.1 is not above 0.1
        ("degenerate_points", 1 / 2),  # 0.5 = 0.5 at the fork; 0.5 against 1.0 at the root
        ("returns", 4),
        ("branch_points", 2),
        ("decisions", 5),
        ("decisions_per_episode", (2 + 1 + 1) / 3),
        ("cut_actions", 1 / 5),
        ("context_ends", 1 / 4),
        ("generated_tokens", 2 + 1 + 4 + 1 + 1),
        ("stored_tokens", 16 + 8),  # contexts 5 + 3, actions 2 + 1 + 4 + 1; and 7 + 1
        ("row_tokens", 11 + 14 + 6 + 8),
    ],
)
def test_by_hand(metrics, name, value):
    assert metrics[name] == pytest.approx(value)


def test_a_number_for_each_and_nothing_else(metrics):
    assert all(isinstance(value, (int, float)) for value in metrics.values())


def test_without_entropies_the_mean_is_zero():
    tree = RolloutTree("t")
    tree.branches = [Branch(None, 0, [Decision([0], [0], [0.0], None, "a")], "terminated")]
    assert batch_metrics([tree], [TreeCredit([[0.0]], [[1.0]])])["entropy"] == 0
