"""Eq 11 and 12: the paper's worked example of what a branch point saves, in exact arithmetic.

Two equally likely prefixes with values V = 0.8 and 0.2, residual variance 0.05, K = 4. The residual is a
three-point variable here: +-1/2 with probability 1/10 each, else 0, which has variance 1/20.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction as F
from itertools import product

from bpo_train.credit import CreditOptions, make_credit

VALUES = {F(4, 5): F(1, 2), F(1, 5): F(1, 2)}
RESIDUALS = {F(1, 2): F(1, 10), F(-1, 2): F(1, 10), F(0): F(4, 5)}
K = 4
OPTIONS = CreditOptions(gamma=F(1), propagation=F(1, 2))


def variance(law: dict[F, F]) -> F:
    average = sum(p * x for x, p in law.items())
    return sum(p * (x - average) ** 2 for x, p in law.items())


def groups(law: dict[F, F]):
    """All groups of K independent draws with their probabilities."""
    for draw in product(law.items(), repeat=K):
        probability = F(1)
        for _, p in draw:
            probability *= p
        yield [x for x, _ in draw], probability


def total_law() -> dict[F, F]:
    """Law of V + residual; all six sums differ."""
    return {v + x: p * q for v, p in VALUES.items() for x, q in RESIDUALS.items()}


def advantage_variance(outcomes, member: Callable) -> F:
    law: dict[F, F] = {}
    for tree, probability in outcomes:
        advantage = member(tree)
        law[advantage] = law.get(advantage, F(0)) + probability
    return variance(law)


def test_the_parts_of_the_return_variance():
    nu2, sigma2 = variance(VALUES), variance(RESIDUALS)
    assert (nu2, sigma2) == (F("0.09"), F("0.05"))
    assert variance(total_law()) == nu2 + sigma2 == F("0.14")  # Eq 7


def test_eq_11_compared_from_the_root_the_prefix_counts(grow):
    rloo = make_credit("rloo", OPTIONS)
    outcomes = ((grow([F(0), r[0]], {0: [[F(0), x] for x in r[1:]]}), p) for r, p in groups(total_law()))
    found = advantage_variance(outcomes, lambda tree: rloo([tree])[0].advantages[1][0])
    assert found == F(4, 3) * F("0.14")  # Eq 8
    assert round(float(found), 5) == 0.18667


def test_eq_12_siblings_share_the_prefix_and_it_cancels(grow):
    bpo = make_credit("bpo", OPTIONS)
    outcomes = (
        (grow([F(0), v + r[0]], {1: [[v + x] for x in r[1:]]}), q * p)
        for v, q in VALUES.items()
        for r, p in groups(RESIDUALS)
    )
    found = advantage_variance(outcomes, lambda tree: bpo([tree])[0].advantages[1][0])
    assert found == F(4, 3) * F("0.05")  # Eq 9
    assert round(float(found), 5) == 0.06667
    assert F(4, 3) * F("0.14") - found == F(4, 3) * F("0.09")  # Eq 10
    assert round(float(1 - found / (F(4, 3) * F("0.14"))), 2) == 0.64
