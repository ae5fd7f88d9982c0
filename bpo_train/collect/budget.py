"""How many returns a tree costs, and which (M, K) a given number of returns buys.

N = 1 + M (K - 1)          the backbone is sibling 1 at each of its M branch points
N = 1 + M K                with K fresh siblings at each, the backbone left out
"""

from __future__ import annotations


def check_shape(branch_points: int, siblings: int) -> None:
    """Raise ValueError unless M >= 0 and, where there are branch points, K >= 2."""
    if branch_points < 0:
        raise ValueError(f"M = {branch_points} branch points: expected 0 or more")
    if branch_points and siblings < 2:
        raise ValueError(
            f"K = {siblings} siblings at {branch_points} branch points: a group needs at least 2 to compare; "
            f"raise K, or set M = 0 for backbones only"
        )


def forks_per_point(siblings: int, fresh: bool = False) -> int:
    """Branches forked at one branch point: K - 1, or K fresh ones."""
    return siblings if fresh else siblings - 1


def returns_per_tree(branch_points: int, siblings: int, fresh: bool = False) -> int:
    """N, the returns of a tree in which all M branch points were found."""
    check_shape(branch_points, siblings)
    return 1 + branch_points * forks_per_point(siblings, fresh)


def siblings_for(returns: int, branch_points: int, fresh: bool = False) -> int:
    """K such that M branch points make exactly N returns; else ValueError names the nearest N."""
    if branch_points < 1:
        raise ValueError(
            f"M = {branch_points}: expected at least one branch point to divide {returns} returns by"
        )
    forks, rest = divmod(returns - 1, branch_points)
    siblings = forks if fresh else forks + 1
    if rest or siblings < 2:
        least = returns_per_tree(branch_points, 2, fresh)
        below = max(least, 1 + branch_points * forks)
        raise ValueError(
            f"no K makes N = {returns} returns with M = {branch_points}: the nearest budgets are {below} and "
            f"{below + branch_points}"
        )
    return siblings


def branch_points_for(returns: int, siblings: int, fresh: bool = False) -> int:
    """M such that K siblings each make exactly N returns; else ValueError names the nearest N."""
    check_shape(1, siblings)
    forks = forks_per_point(siblings, fresh)
    points, rest = divmod(returns - 1, forks)
    if rest or points < 1:
        below = 1 + forks * max(1, points)
        raise ValueError(
            f"no M makes N = {returns} returns with K = {siblings}: the nearest budgets are {below} and "
            f"{below + forks}"
        )
    return points
