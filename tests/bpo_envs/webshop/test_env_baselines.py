"""A rule that needs no thought scores what it scores in the original, over the 500 test goals.

The rule: search for the instruction as it stands, open the first product, buy it without options.
"""

from __future__ import annotations

import pytest

from bpo_envs.webshop.env import WebShopEnv


def play(env, goals=500):
    """Mean score and share of perfect purchases, in per cent."""
    score = won = 0.0
    for goal_idx in range(goals):
        _, info = env.reset(options={"goal_idx": goal_idx})
        env.step(f"search[{info['instruction']}]")
        env.step(f"click[{env.results()[0]}]")
        *_, info = env.step("click[buy now]")
        score, won = score + info["score"], won + info["won"]
    return round(100 * score / goals, 1), round(100 * won / goals, 1)


@pytest.mark.parametrize(("goals", "expected"), [("synthetic", (67.3, 9.6)), ("human", (71.9, 27.6))])
def test_rule_on_the_shipped_catalogue(goals, expected):
    assert play(WebShopEnv(goals=goals, split="test")) == expected


def test_rule_on_the_real_1000_products(shared):
    data = shared / "data" / "webshop" / "real1000"
    assert play(WebShopEnv(data, split="test")) == (57.1, 2.2)
