"""What `bpo` computes in expectation under each of its named options, with a fixed branch point: exactly.

At the branch point, and after it where credit is inherited, it has the true gradient: times the K pairs there
under `pair`, once under `split`. Before it, it has nothing, whatever lambda and the layout of the prefix are.
"""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import expected_gradient, tree_credit, trees
from tiny_mdp import at_depth, random_mdp, scaled

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

MDP = random_mdp(21, depth=3)
POINT = 1


@pytest.mark.parametrize("siblings", [2, 3])
@pytest.mark.parametrize("weight", ["pair", "split"])
@pytest.mark.parametrize("suffix", ["inherit", "none"])
@pytest.mark.parametrize("prefix", ["backbone", "rows"])
@pytest.mark.parametrize("propagation", [F(0), F(19, 20)])
def test_bpo_has_the_gradient_from_its_branch_point_on(siblings, weight, suffix, prefix, propagation):
    schedule = make_schedule("equal", ScheduleOptions(1, siblings, decisions=(POINT,)))
    options = CreditOptions(propagation=propagation, suffix=suffix, prefix=prefix, weight=weight)
    found = expected_gradient(MDP, trees(MDP, schedule), tree_credit(make_credit("bpo", options)))
    reached = (POINT, POINT + 1) if suffix == "inherit" else (POINT,)
    target = at_depth(MDP.policy_gradient(F(1)), *reached)
    assert found == scaled(target, F(siblings if weight == "pair" else 1))


def test_with_the_root_as_its_branch_point_nothing_is_missing():
    schedule = make_schedule("equal", ScheduleOptions(1, 2, decisions=(0,)))
    found = expected_gradient(
        MDP, trees(MDP, schedule), tree_credit(make_credit("bpo", CreditOptions(weight="split")))
    )
    assert found == MDP.policy_gradient(F(1))
