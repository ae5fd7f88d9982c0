"""Hand-made rollout trees: only the rewards matter to a credit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from bpo_train.tree import BranchPoint, Decision, RolloutTree

Rewards = Sequence[float]


def grow_tree(
    backbone: Rewards,
    siblings: Mapping[int, Sequence[Rewards]] | None = None,
    extras: Sequence[Rewards] = (),
    task_id: str = "task",
) -> RolloutTree:
    """A tree from rewards: `siblings[t]` are the forks at backbone decision t, `extras` extra backbones."""
    tree = RolloutTree(task_id)
    fill(tree, 0, backbone)
    for depth, forks in (siblings or {}).items():
        add_point(tree, 0, depth, forks)
    if extras:
        add_point(tree, 0, 0, extras).scheduled = False
    return tree


def add_point(tree: RolloutTree, branch: int, depth: int, forks: Sequence[Rewards]) -> BranchPoint:
    indices = []
    for rewards in forks:
        indices.append(tree.add_fork(branch, depth))
        fill(tree, indices[-1], rewards)
    tree.branch_points.append(BranchPoint(branch, depth, indices))
    return tree.branch_points[-1]


def fill(tree: RolloutTree, branch: int, rewards: Rewards) -> None:
    tree.branches[branch].decisions = [Decision([], [0], [0.0], [0.0], "a", reward) for reward in rewards]


@pytest.fixture
def grow() -> Callable[..., RolloutTree]:
    return grow_tree


@pytest.fixture
def fork() -> Callable[..., BranchPoint]:
    return add_point
