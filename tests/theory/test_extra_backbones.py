"""Unused budget becomes extra backbones, whose number depends on how the backbone went on.

With the formula of `bpo-corrected` and `split` weights the expected gradient is the exact one times 1 + the
mean number of extra backbones, if the backbone leaves them out of its baseline; not if it uses them.
"""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import at_threshold, expected_gradient, tree_credit, trees
from tiny_mdp import at_depth, random_mdp, scaled, selection_example

from bpo_train.credit import CreditOptions, make_credit

GAMMA = F(3, 4)


def credit(weight):
    return tree_credit(make_credit("bpo-corrected", CreditOptions(gamma=GAMMA, weight=weight)), F(1, 3))


def grown(mdp, points, root=False):
    """All trees with their budget filled, and the mean number of extra backbones."""
    outcomes = list(trees(mdp, at_threshold(0.65, points, 2, root), fill=True))
    counts = [sum(len(p.siblings) for p in tree.branch_points if not p.scheduled) for tree, _ in outcomes]
    assert len(set(counts)) > 1
    return outcomes, sum((n * probability for n, (_, probability) in zip(counts, outcomes)), F(0))


@pytest.mark.parametrize(
    ("mdp", "points", "root"),
    [
        (selection_example(), 1, False),
        (selection_example(), 2, True),
        (random_mdp(29, depth=3, ends_early=True), 2, False),
        (random_mdp(2, depth=2, two_tokens=True, ends_early=True), 1, False),
    ],
)
def test_the_direction_is_exact(mdp, points, root):
    outcomes, extras = grown(mdp, points, root)
    assert expected_gradient(mdp, outcomes, credit("split")) == scaled(mdp.policy_gradient(GAMMA), 1 + extras)


def test_a_backbone_that_used_them_as_its_baseline_would_be_biased():
    """At depth 0, above every branch point, where `pair` and `split` weights are both 1."""
    mdp = selection_example()
    outcomes, extras = grown(mdp, 1)
    target = at_depth(scaled(mdp.policy_gradient(GAMMA), 1 + extras), 0)
    assert at_depth(expected_gradient(mdp, outcomes, credit("pair")), 0) == target
    for tree, _ in outcomes:
        for point in tree.branch_points:
            point.scheduled = True  # as if the extra backbones were ordinary siblings at the root
    assert at_depth(expected_gradient(mdp, outcomes, credit("pair")), 0) != target
