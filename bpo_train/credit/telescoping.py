"""Telescoping credit (`bpo-corrected`): each branch point is a value estimate; credit is their difference.

For a decision u let p be the last branch point at or before it and q the first after it on its own branch:

    A(u) =   [ sum_{i=u}^{q-1} gamma^(i-u) r_i + gamma^(q-u) mean_K G_q ]
           - gamma^-(u-p) [ mean of G_p over the other K-1 members at p - sum_{i=p}^{u-1} gamma^(i-p) r_i ]

Without a q the first bracket is the branch's own return-to-go. The same formula serves siblings; at gamma = 1
it gives them Eq 4 with `inherit`, below 1 it adds the factor gamma^-(u-p) that the target needs. The target,
sum_t E[grad log pi(a_t|s_t) Q_gamma(s_t, a_t)], is met in expectation, exactly with `split` weights, if every
branch point was decided before its action was drawn. With a post-hoc schedule q is no stopping time: biased.

Before the first branch point the second bracket starts (p = 0) from a baseline of the root that does not
depend on this tree: the mean root value of the other trees of the same prompt; else the task's running mean
over earlier batches; else the mean over the batch's other prompts; else there is none and the bracket is 0.

Extra backbones (unused budget) need care: *how many* there are depends on how the backbone went on, so a
backbone that used them as its baseline would learn from a baseline that knows its future (biased wherever the
ordinary baseline is not the true value). The backbone and the scheduled siblings at the root therefore ignore
them. An extra backbone is independent of all the others, so its baseline is the mean of all other root
returns. Each has weight 1: a prompt's expected gradient is the true one times 1 + the mean number of extras.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpo_train.credit import group
from bpo_train.credit.base import CreditOptions, TreeCredit, register
from bpo_train.tree import RolloutTree

MEMORY = 10
"""Batches after which a task's running mean forgets: the policy moves, and its value with it."""


class TreeValues:
    """Telescoping credit of one tree, given the root's baseline."""

    def __init__(self, tree: RolloutTree, options: CreditOptions) -> None:
        self.tree = tree
        self.gamma = options.gamma
        points = [p for p in group.usable_points(tree) if p.scheduled]
        self.groups = group.groups_at(points)
        self.group_of = group.membership(self.groups)
        self.extras = {s for p in tree.branch_points if not p.scheduled for s in p.siblings}
        self.roots = [i for i, branch in enumerate(tree.branches) if branch.fork == 0]
        branches = range(len(tree.branches))
        self.paths = [group.steps_on_path(tree, branch) for branch in branches]
        self.rewards = [tree.rewards(branch, 0) for branch in branches]  # along the path, as `returns`
        self.returns = [group.returns_to_go(rewards, self.gamma) for rewards in self.rewards]

    def estimate(self, branch: int, start: int, depth: int) -> float:
        """Return from `start` along `branch`, averaged over the group at its first point q after `depth`:

        sum_{i=start}^{q-1} gamma^(i-start) r_i + gamma^(q-start) mean_K G_q; without a q its own return.
        """
        later = [q for owner, q in self.groups if owner == branch and q > depth]
        if not later:
            return self.returns[branch][start]
        q = min(later)
        value = group.mean([self.returns[member][q] for member in self.groups[branch, q]])
        return group.discounted([*self.rewards[branch][start:q], value], self.gamma)

    def reference(self, branch: int, depth: int, baseline: float | None) -> tuple[int, float | None]:
        """The last branch point p at or before `depth`, and the mean return of the other members there.

        Before the first branch point: the root and its baseline.
        """
        for owner, p in reversed(self.paths[branch][: depth + 1]):
            if (owner, p) in self.group_of:
                others = [member for member in self.group_of[owner, p] if member != owner]
                return p, group.mean([self.returns[member][p] for member in others])
        return 0, self.extra_baseline(branch) if branch in self.extras else baseline

    def advantage(self, branch: int, depth: int, baseline: float | None) -> float:
        """A(u) as above, but with both brackets taken back to p: there equal returns cancel exactly."""
        p, expected = self.reference(branch, depth, baseline)
        if expected is None:
            return self.estimate(branch, depth, depth)
        return (self.estimate(branch, p, depth) - expected) / self.gamma ** (depth - p)

    def extra_baseline(self, branch: int) -> float:
        """Mean of all other root returns."""
        return group.mean([self.returns[root][0] for root in self.roots if root != branch])

    def root_value(self) -> float:
        """Estimate of the prompt's value: the mean over all rollouts that start at the root."""
        return group.mean([self.estimate(root, 0, 0) for root in self.roots])

    def advantages(self, baseline: float | None) -> list[list[float]]:
        return [
            [self.advantage(i, depth, baseline) for depth in range(branch.fork, branch.end)]
            for i, branch in enumerate(self.tree.branches)
        ]


@register("bpo-corrected")
class Telescoping:
    """Telescoping credit with a running mean of the root value per task."""

    needs_predictable = True
    root_only = False
    needs_siblings = True

    def __init__(self, options: CreditOptions) -> None:
        self.options = options
        self.running: dict[str, tuple[int, float]] = {}  # task id -> (batches seen, mean root value)

    def __call__(self, trees: Sequence[RolloutTree]) -> list[TreeCredit]:
        values = [TreeValues(tree, self.options) for tree in trees]
        own = [value.root_value() for value in values]
        roots: dict[str, list[float]] = {}
        for tree, root in zip(trees, own):
            roots.setdefault(tree.task_id, []).append(root)
        credits = [
            TreeCredit(
                value.advantages(self.baseline(tree.task_id, root, roots)),
                group.step_weights(tree, value.groups, self.options.weight),
            )
            for tree, value, root in zip(trees, values, own)
        ]
        self.observe(roots)
        return credits

    def baseline(self, task_id: str, own: float, roots: dict[str, list[float]]) -> float | None:
        """Baseline of the root from all but this tree, whose value in `roots[task_id]` is `own`."""
        same = list(roots[task_id])
        same.remove(own)
        if same:
            return group.mean(same)
        if task_id in self.running:
            return self.running[task_id][1]
        others = [group.mean(found) for other, found in roots.items() if other != task_id]
        return group.mean(others) if others else None

    def observe(self, roots: dict[str, list[float]]) -> None:
        """Let the running means take in a batch that has been credited."""
        for task_id, found in roots.items():
            count, average = self.running.get(task_id, (0, 0))
            count = min(count + 1, MEMORY)
            self.running[task_id] = (count, average + (group.mean(found) - average) / count)

    def state_dict(self) -> dict[str, Any]:
        return {"running": {task_id: list(entry) for task_id, entry in self.running.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.running = {task_id: (int(n), average) for task_id, (n, average) in state["running"].items()}
