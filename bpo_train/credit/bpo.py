"""The paper's credit: Eq 4 at a branch point, Eq 5 before it, `inherit` or nothing after it.

Read one path from the root to a leaf: some of its decisions are members of a group and carry a local
advantage (Eq 4). A decision is credited with the discounted local advantages of the members at and after it
(Eq 5), and, with `inherit`, one that is no member also with the last local advantage before it, undiscounted.
Which path a shared decision is read from is the option `prefix`:

- "backbone": from the end of the branch that owns it, so each pair (s, a) counts once.
- "rows": from every leaf below it, summed, as a trainer that makes a row of each leaf would do. The K local
  advantages of a group sum to 0, so a group whose members end in one leaf each cancels identically from all
  decisions above it. A member with a later branch point below it counts once for each of its leaves.

Extra backbones (unused budget) are siblings at the root like any other. The estimate is biased without them
too: given s_t, Eq 5 has mean 0 for t' < t, and a post-hoc schedule selects on what came after.
"""

from __future__ import annotations

from bpo_train.credit import group
from bpo_train.credit.base import CreditOptions, PerTree, TreeCredit, register
from bpo_train.tree import RolloutTree


def local_advantages(
    tree: RolloutTree, groups: dict[group.Step, list[int]], gamma: float
) -> dict[group.Step, float]:
    """Eq 4 for each member of each group, at the member's own decision.

    A fork that lost all others it could be compared with has the local advantage 0.
    """
    local: dict[group.Step, float] = {
        (i, branch.fork): 0 for i, branch in enumerate(tree.branches) if branch.parent is not None
    }
    group.membership(groups)  # raises where a decision belongs to two groups
    for (_, depth), group_members in groups.items():
        returns = [group.return_to_go(tree, member, depth, gamma) for member in group_members]
        for member, advantage in zip(group_members, group.leave_one_out(returns)):
            local[member, depth] = advantage
    return local


def propagated(local: dict[int, float], depth: int, propagation: float) -> float:
    """Eq 5: A(s_t', a_t') = sum over branch points t >= t' of lambda^(t - t') A_local(t).

    Args:
        local: local advantage by depth of the members on one path.
        depth: t'.
        propagation: lambda.
    """
    return sum(propagation ** (t - depth) * advantage for t, advantage in local.items() if t >= depth)


def path_advantages(local: dict[int, float], depths: list[int], options: CreditOptions) -> list[float]:
    """A(s_u, a_u) for each depth u of one path, given the local advantages of its members by depth."""
    advantages = []
    inherited: float = 0
    for depth in depths:
        if depth in local:
            inherited = local[depth]
            advantages.append(propagated(local, depth, options.propagation))
        else:
            tail = inherited if options.suffix == "inherit" else 0
            advantages.append(tail + propagated(local, depth, options.propagation))
    return advantages


@register("bpo")
class Bpo(PerTree):
    """Eq 4 to 6 as the paper states them."""

    needs_predictable = False
    root_only = False
    needs_siblings = True

    def credit(self, tree: RolloutTree) -> TreeCredit:
        options = self.options
        groups = group.groups_at(group.usable_points(tree))
        local = local_advantages(tree, groups, options.gamma)
        advantages = group.zeros(tree)
        for leaf in range(len(tree.branches)):
            steps = group.steps_on_path(tree, leaf)
            on_path = {step[1]: local[step] for step in steps if step in local}
            values = path_advantages(on_path, [depth for _, depth in steps], options)
            for (owner, depth), value in zip(steps, values):
                if owner == leaf or options.prefix == "rows":
                    advantages[owner][depth - tree.branches[owner].fork] += value
        return TreeCredit(advantages, group.step_weights(tree, groups, options.weight))
