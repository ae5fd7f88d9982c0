"""What all credits share: who is compared with whom, and the few formulas for one group.

A group is the K continuations of one decision. `groups_at` reads the groups off a tree's branch points,
`membership` turns them round: from a member's own decision to its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bpo_train.credit.base import TreeCredit
from bpo_train.tree import BranchPoint, RolloutTree

Step = tuple[int, int]
"""A decision's address: (branch that owns it, depth)."""


def leave_one_out(returns: Sequence[float]) -> list[float]:
    """Eq 4: A_k = G_k - 1/(K-1) sum_{j != k} G_j, for K >= 2 returns of one group.

    Summed as the mean of G_k - G_j, so that a group of equal returns earns exactly 0 in floating point too.
    """
    if len(returns) < 2:
        raise ValueError(f"a group of {len(returns)} has no others to compare with: Eq 4 needs K >= 2")
    return [sum(own - other for other in returns) / (len(returns) - 1) for own in returns]


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; of equal floats it is that float exactly, so that equal groups compare as equal."""
    return values[0] + sum(value - values[0] for value in values) / len(values)


def returns_to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    """G_t = sum over i >= t of gamma^(i-t) r_i, for each t."""
    total: float = 0
    found = []
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    return found[::-1]


def discounted(rewards: Sequence[float], gamma: float) -> float:
    """Sum over i of gamma^i r_i; 0 of none."""
    return returns_to_go(rewards, gamma)[0] if rewards else 0


def return_to_go(tree: RolloutTree, branch: int, depth: int, gamma: float) -> float:
    """G_t^(t,k): the discounted return from decision `depth` along the path to the end of `branch`."""
    return discounted(tree.rewards(branch, depth), gamma)


def usable_points(tree: RolloutTree) -> list[BranchPoint]:
    """Branch points that still have a group of at least two; siblings may have been lost."""
    return [point for point in tree.branch_points if len(point.members) >= 2]


def groups_at(points: Iterable[BranchPoint]) -> dict[Step, list[int]]:
    """The group at each decision (branch, depth) with a branch point; two points at one make one group."""
    groups: dict[Step, list[int]] = {}
    for point in points:
        group = groups.setdefault((point.branch, point.depth), [])
        group += [branch for branch in point.members if branch not in group]
    return groups


def membership(groups: dict[Step, list[int]]) -> dict[Step, list[int]]:
    """The group that a member's decision belongs to.

    Raises:
        ValueError: a decision belongs to two groups (a branch point at the first decision of a fork, which is
            a member of its parent's group already).
    """
    found: dict[Step, list[int]] = {}
    for (branch, depth), group in groups.items():
        for member in group:
            if (member, depth) in found:
                raise ValueError(
                    f"decision {depth} of branch {member} belongs to two groups: {found[member, depth]} and "
                    f"{group} (point on branch {branch}); add the siblings to one branch point instead"
                )
            found[member, depth] = group
    return found


def steps_on_path(tree: RolloutTree, branch: int) -> list[Step]:
    """Addresses of all decisions from the root to the end of `branch`."""
    return [(owner, depth) for owner, depth, _ in tree.path(branch)]


def step_weights(tree: RolloutTree, groups: dict[Step, list[int]], weight: str) -> list[list[float]]:
    """Weight of each pair (s, a) in Eq 6.

    "pair": 1 each. "split": 1/K for each group at or above the step (importance splitting: the weights of all
    leaves sum to 1).
    """
    if weight == "pair":
        return [[1.0] * len(branch.decisions) for branch in tree.branches]
    group_of = membership(groups)
    weights: list[list[float]] = []
    for branch in range(len(tree.branches)):
        share, own = 1.0, []
        for step in steps_on_path(tree, branch):
            share /= len(group_of.get(step, "1"))
            if step[0] == branch:
                own.append(share)
        weights.append(own)
    return weights


def zeros(tree: RolloutTree) -> list[list[float]]:
    """A zero for each decision of the tree."""
    return [[0] * len(branch.decisions) for branch in tree.branches]


def root_group(tree: RolloutTree, credit: str) -> list[int]:
    """All branches of a tree whose rollouts share nothing but the prompt.

    Raises:
        ValueError: a branch forks later than that.
    """
    for index, branch in enumerate(tree.branches):
        if branch.fork != 0:
            raise ValueError(
                f"{credit} compares rollouts that share only the prompt, but branch {index} of "
                f"{tree.task_id} forks at decision {branch.fork}: use the schedule `root`"
            )
    return list(range(len(tree.branches)))


def flat_credit(tree: RolloutTree, advantages: Sequence[float], weight: str) -> TreeCredit:
    """Give each decision of rollout i the advantage of rollout i; weight 1 ("pair") or 1/N ("split")."""
    share = 1.0 if weight == "pair" else 1.0 / len(tree.branches)
    return TreeCredit(
        advantages=[[a] * len(branch.decisions) for a, branch in zip(advantages, tree.branches)],
        weights=[[share] * len(branch.decisions) for branch in tree.branches],
    )
