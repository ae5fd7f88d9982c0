"""RLOO: N rollouts of a prompt, each compared with the mean of the others (Eq 4 at the root, carried flat).

With gamma < 1 the flat advantage makes it an estimate of the gradient of E[G_0], as in the field.
"""

from __future__ import annotations

from bpo_train.credit import group
from bpo_train.credit.base import PerTree, TreeCredit, register
from bpo_train.tree import RolloutTree


@register("rloo")
class Rloo(PerTree):
    """Leave-one-out over the rollouts of a prompt; a lone rollout earns 0."""

    needs_predictable = False
    root_only = True
    needs_siblings = True

    def credit(self, tree: RolloutTree) -> TreeCredit:
        rollouts = group.root_group(tree, "rloo")
        returns = [group.return_to_go(tree, rollout, 0, self.options.gamma) for rollout in rollouts]
        advantages = group.leave_one_out(returns) if len(returns) > 1 else [0]
        return group.flat_credit(tree, advantages, self.options.weight)
