"""What a batch of trees was like, in numbers that are logged with every update."""

from __future__ import annotations

from collections.abc import Sequence

from .credit import TreeCredit
from .tree import RolloutTree

_NOTABLE = 0.1  # |A| above which the paper counts a step as non-degenerate; returns lie in [0, 1]
_EQUAL = 1e-6


def batch_metrics(
    trees: Sequence[RolloutTree], credits: Sequence[TreeCredit], gamma: float = 1.0
) -> dict[str, float]:
    """Outcomes, entropy, degeneracy and size of a batch.

    `success` and `score` count rollouts from the root only: forks over-represent the states they start from.
    `credits` are in units of the return, before any normalisation. `nondegenerate_steps` is the share of
    decisions with |advantage| > 0.1, `degenerate_points` the share of
    branch points whose siblings' returns are all equal.
    """
    roots = [branch for tree in trees for branch in tree.branches if branch.fork == 0]
    decisions = [decision for tree in trees for branch in tree.branches for decision in branch.decisions]
    advantages = [a for credit in credits for branch in credit.advantages for a in branch]
    entropies = [d.entropies[0] for d in decisions if d.entropies]
    points = [(tree, point) for tree in trees for point in tree.branch_points]
    spreads = []
    for tree, point in points:
        returns = [tree.return_to_go(branch, point.depth, gamma) for branch in point.members]
        spreads.append(max(returns) - min(returns))
    return {
        "success": _mean([branch.won for branch in roots]),
        "score": _mean([branch.score for branch in roots]),
        "return": _mean(
            [tree.return_to_go(b) for tree in trees for b, n in enumerate(tree.branches) if n.fork == 0]
        ),
        "entropy": _mean(entropies),
        "nondegenerate_steps": _mean([abs(a) > _NOTABLE for a in advantages]),
        "degenerate_points": _mean([spread < _EQUAL for spread in spreads]),
        "returns": sum(tree.returns for tree in trees),
        "branch_points": len(points),
        "decisions": len(decisions),
        "decisions_per_episode": _mean([branch.end for branch in roots]),
        "cut_actions": _mean([d.cut for d in decisions]),
        "context_ends": _mean([branch.ended == "context" for tree in trees for branch in tree.branches]),
        "generated_tokens": sum(tree.generated_tokens() for tree in trees),
        "stored_tokens": sum(tree.stored_tokens() for tree in trees),
        "row_tokens": sum(tree.row_tokens() for tree in trees),
    }


def _mean(values: Sequence[float]) -> float:
    return float(sum(values) / len(values)) if values else 0.0
