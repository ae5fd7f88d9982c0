"""REINFORCE without a baseline: each decision earns its return-to-go. The yardstick of the exact tests."""

from __future__ import annotations

from bpo_train.credit import group
from bpo_train.credit.base import PerTree, TreeCredit, register
from bpo_train.tree import RolloutTree


@register("reinforce")
class Reinforce(PerTree):
    """A(u) = G_u for each rollout of a prompt."""

    needs_predictable = False
    root_only = True
    needs_siblings = False

    def credit(self, tree: RolloutTree) -> TreeCredit:
        gamma = self.options.gamma
        credit = group.flat_credit(tree, [0.0] * tree.returns, self.options.weight)
        for rollout in group.root_group(tree, "reinforce"):
            credit.advantages[rollout] = group.returns_to_go(tree.rewards(rollout, 0), gamma)
        return credit
