"""GRPO: N rollouts of a prompt, each compared with the mean of all, in units of the group's deviation.

Dividing by the deviation makes easy and hard prompts count alike and is a bias; `scale="none"` leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence

from bpo_train.credit import group
from bpo_train.credit.base import PerTree, TreeCredit, register
from bpo_train.tree import RolloutTree


def group_relative(returns: Sequence[float], scale: str, eps: float) -> list[float]:
    """(G_k - mean G) / (std G + eps), std with K - 1 in the denominator; "none" leaves the division out.

    A group of equal returns, or of one, earns exactly 0.
    """
    size = len(returns)
    centred = [sum(own - other for other in returns) / size for own in returns]
    if scale == "none" or size < 2:
        return centred
    deviation = (sum(value * value for value in centred) / (size - 1)) ** 0.5
    return [value / (deviation + eps) for value in centred]


@register("grpo")
class Grpo(PerTree):
    """Group-relative advantage over the rollouts of a prompt."""

    needs_predictable = False
    root_only = True
    needs_siblings = True

    def credit(self, tree: RolloutTree) -> TreeCredit:
        rollouts = group.root_group(tree, "grpo")
        returns = [group.return_to_go(tree, rollout, 0, self.options.gamma) for rollout in rollouts]
        return group.flat_credit(
            tree, group_relative(returns, self.options.scale, self.options.eps), self.options.weight
        )
