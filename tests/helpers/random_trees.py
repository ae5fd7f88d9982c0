"""Rollout trees with random tokens, for whatever must hold of every tree."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from bpo_train.credit import TreeCredit
from bpo_train.tree import Branch, BranchPoint, Decision, RolloutTree


def grow(rng: np.random.Generator, branch: Branch, decisions: int, vocabulary: int) -> None:
    """Give `branch` that many random decisions; a fork's first one has no context."""
    for number in range(decisions):
        forked = number == 0 and branch.parent is not None
        context = [] if forked else rng.integers(1, vocabulary, rng.integers(1, 6)).tolist()
        action = rng.integers(1, vocabulary, rng.integers(1, 5)).tolist()
        logprobs, entropies = (-rng.exponential(2.0, len(action))).tolist(), rng.random(len(action)).tolist()
        reward = float(rng.choice([0.0, 0.5, 1.0]))
        branch.decisions.append(Decision(context, action, logprobs, entropies, f"a{number}", reward))


def random_tree(seed: int, forks: int = 4, extras: int = 1, vocabulary: int = 48) -> RolloutTree:
    """A backbone of 1 to 4 decisions, `forks` siblings anywhere on what has grown, and extra backbones.

    Forks of forks, siblings at the root and several at one decision all occur.
    """
    rng = np.random.default_rng(seed)
    tree = RolloutTree(f"task-{seed}")
    grow(rng, tree.backbone, int(rng.integers(1, 5)), vocabulary)
    for number in range(forks + extras):
        parent = int(rng.integers(len(tree.branches))) if number < forks else 0
        node = tree.branches[parent]
        depth = int(rng.integers(node.fork, node.end)) if number < forks else 0
        index = tree.add_fork(parent, depth)
        grow(rng, tree.branches[index], int(rng.integers(1, 4)), vocabulary)
        tree.branch_points.append(BranchPoint(parent, depth, [index], scheduled=number < forks))
    return tree


def random_credit(tree: RolloutTree, seed: int, zeros: float = 0.3) -> TreeCredit:
    """Random advantages and weights; a share of the advantages is 0."""
    rng = np.random.default_rng((seed, 1))

    def values(draw) -> list[list[float]]:
        return [[float(draw()) for _ in branch.decisions] for branch in tree.branches]

    advantages = values(lambda: 0.0 if rng.random() < zeros else rng.normal())
    return TreeCredit(advantages, values(lambda: rng.uniform(0.25, 1.0)))


trees = st.builds(random_tree, st.integers(0, 2**32 - 1), forks=st.integers(0, 5), extras=st.integers(0, 2))
