"""The variance of the estimators, not only their mean: exactly, against moments of rollouts and of pairs.

The oracle never sees a tree or a credit: it runs over episodes, or over pairs of them, and writes the
estimator down as a formula.
"""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from enumeration import expected_gradient, second_moment, squared, tree_credit, trees
from tiny_mdp import at_depth, random_mdp

from bpo_train.collect.schedule import ScheduleOptions, make_schedule
from bpo_train.credit import CreditOptions, make_credit

MDPS = [
    random_mdp(11, depth=2),
    random_mdp(12, depth=3),
    random_mdp(13, depth=2, two_tokens=True, ends_early=True),
]


def at_root(siblings):
    return make_schedule("root", ScheduleOptions(1, siblings))


def fixed(depths, siblings):
    return make_schedule("equal", ScheduleOptions(len(depths), siblings, decisions=depths))


def credit_of(name, baseline=None, **options):
    return tree_credit(make_credit(name, CreditOptions(**options)), baseline)


def score_of(mdp, steps):
    """sum over an episode of grad log pi."""
    return mdp.gradient({step: F(1) for step in steps})


def rewards_of(mdp, steps):
    return [mdp.reward(state, action) for state, action in steps]


def plus(one, other, sign=1):
    return {key: one.get(key, 0) + sign * other.get(key, 0) for key in one.keys() | other.keys()}


@pytest.mark.parametrize("mdp", MDPS)
def test_rloo_of_two_is_the_product_of_two_differences(mdp):
    # g = (S_1 - S_2)(G_1 - G_2), S the score of a whole rollout
    episodes = [(score_of(mdp, steps), sum(rewards_of(mdp, steps)), p) for steps, p in mdp.episodes()]
    oracle = sum(
        p * q * (g - h) ** 2 * squared(plus(s, r, -1)) for s, g, p in episodes for r, h, q in episodes
    )
    assert second_moment(mdp, trees(mdp, at_root(2)), credit_of("rloo")) == oracle > 0


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("siblings", [2, 3])
def test_reinforce_adds_up_independent_rollouts(mdp, siblings):
    # one rollout: x = sum_t grad log pi(a_t|s_t) G_t; n of them: E|sum|^2 = n E|x|^2 + n (n - 1) |E x|^2
    mean, moment = {}, F(0)
    for steps, p in mdp.episodes():
        rewards = rewards_of(mdp, steps)
        x = mdp.gradient({step: sum(rewards[t:], F(0)) for t, step in enumerate(steps)})
        mean = plus(mean, {key: p * value for key, value in x.items()})
        moment += p * squared(x)
    oracle = siblings * moment + siblings * (siblings - 1) * squared(mean)
    assert second_moment(mdp, trees(mdp, at_root(siblings)), credit_of("reinforce")) == oracle


@pytest.mark.parametrize("mdp", MDPS[:2])
@pytest.mark.parametrize("weight", ["pair", "split"])
def test_bpo_at_one_point_is_a_pair_at_every_state(mdp, weight):
    # K = 2, no propagation, nothing inherited: g = w (grad log pi(a) - grad log pi(a'))(G - G')
    depth, w = 1, F(1) if weight == "pair" else F(1, 2)
    oracle = F(0)
    for state, reached in mdp.reach().items():
        if len(state) == depth:
            ways = [
                (mdp.gradient({steps[0]: F(1)}), sum(rewards_of(mdp, steps)), p)
                for steps, p in mdp.episodes(state)
            ]
            oracle += reached * sum(
                p * q * (g - h) ** 2 * w**2 * squared(plus(s, r, -1)) for s, g, p in ways for r, h, q in ways
            )
    credit = credit_of("bpo", propagation=F(0), suffix="none", weight=weight)
    assert second_moment(mdp, trees(mdp, fixed((depth,), 2)), credit) == oracle > 0


@pytest.mark.parametrize("mdp", MDPS[:2])
def test_eq_5_adds_noise_to_the_prefix_and_no_signal(mdp):
    grown = fixed((1,), 2)

    def prefix(gradient):
        return at_depth(gradient, 0)

    with_lambda = credit_of("bpo", propagation=F(19, 20))
    assert prefix(expected_gradient(mdp, trees(mdp, grown), with_lambda)) == {}
    assert second_moment(mdp, trees(mdp, grown), with_lambda, prefix) > 0
    assert second_moment(mdp, trees(mdp, grown), credit_of("bpo", propagation=F(0)), prefix) == 0


@pytest.mark.parametrize("mdp", MDPS[:2])
def test_telescoping_gives_the_prefix_its_signal_with_less_variance_than_one_return_has(mdp):
    # before the first branch point: reinforce with a baseline uses one return, telescoping the mean of K
    baseline = mdp.value((), F(1))

    def prefix(gradient):
        return at_depth(gradient, 0)

    def variance(siblings):
        credit = credit_of("bpo-corrected", baseline, weight="split")
        mean = prefix(expected_gradient(mdp, trees(mdp, fixed((1,), siblings)), credit))
        assert mean == prefix(mdp.policy_gradient(F(1)))
        return second_moment(mdp, trees(mdp, fixed((1,), siblings)), credit, prefix) - squared(mean)

    single = F(0)
    for steps, p in mdp.episodes():
        total = sum(rewards_of(mdp, steps))
        single += p * squared(mdp.gradient({steps[0]: total - baseline}))
    single -= squared(prefix(mdp.policy_gradient(F(1))))
    assert single > variance(2) > variance(3) > 0
