"""A scripted shopper that knows the goal, and errs as often as it is told to: data for imitation."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

import gymnasium as gym

from bpo_envs.webshop.catalog import Catalog
from bpo_envs.webshop.compact import SHOWN
from bpo_envs.webshop.env import WebShopEnv
from bpo_envs.webshop.goals import Goal
from bpo_envs.webshop.reward import purchase_reward
from bpo_envs.webshop.session import ITEM, RESULTS

_WRONG_OPTION = 0.3  # of the options it misses, this share is picked wrongly, the rest not at all
_OPENED_AT_MOST = 3
_GIVES_UP_AFTER = 5  # steps after which it no longer goes back for a better product


@dataclass(frozen=True)
class NoisyExpert:
    """Acts in the compact view.

    Attributes:
        query, item, option, back: probability of the right choice when wording the search (else one
            attribute, one option or the category alone), opening a product (else any), picking each option
            (else a wrong one or none), and going back from a product that cannot earn the full reward (else
            it buys).
    """

    query: float = 1.0
    item: float = 1.0
    option: float = 1.0
    back: float = 1.0

    def __call__(self, env: gym.Env, rng: random.Random) -> str:
        """The next action, in the words of `CompactView`."""
        shop = env.unwrapped
        if not isinstance(shop, WebShopEnv):
            raise TypeError(f"NoisyExpert shops in bpo/WebShop-v0; given: {shop!r}")
        listed = shop.results()[:SHOWN] if shop.session.kind == RESULTS else ()
        if listed:
            return self._open(shop, listed, rng)
        if shop.session.kind == ITEM:
            return self._at_item(shop, rng)
        return self._search(shop.goal, rng)

    def _search(self, goal: Goal, rng: random.Random) -> str:
        values = list(_wanted(goal))
        if rng.random() < self.query:
            return "search " + " ".join([*goal.attributes, goal.query, *values])
        return "search " + rng.choice([goal.query or goal.attributes[0], goal.attributes[0], *values[:1]])

    def _open(self, shop: WebShopEnv, listed: tuple[str, ...], rng: random.Random) -> str:
        fresh = [n for n, asin in enumerate(listed) if asin not in shop.session.asins] or list(
            range(len(listed))
        )
        if rng.random() < self.item:
            best = max(fresh, key=lambda n: (_best(shop.catalog, listed[n], shop.session.goal_idx)[0], -n))
            return f"open {best + 1}"
        return f"open {rng.choice(fresh) + 1}"

    def _at_item(self, shop: WebShopEnv, rng: random.Random) -> str:
        session = shop.session
        product = shop.product
        assert product is not None  # an item page has a product
        reward, picks = _best(shop.catalog, product.asin, session.goal_idx)
        may_leave = (
            not session.options and len(session.asins) < _OPENED_AT_MOST and session.steps < _GIVES_UP_AFTER
        )
        if reward < 1 and may_leave and rng.random() < self.back:
            return "back"
        for name, value in picks:
            if name in session.options:
                continue
            if rng.random() < self.option:
                return f"pick {value}"
            if rng.random() < _WRONG_OPTION:
                return f"pick {rng.choice(product.options[name])}"
        return "buy"


def _wanted(goal: Goal) -> tuple[str, ...]:
    options = goal.goal_options
    return tuple(options.values()) if isinstance(options, dict) else options


@lru_cache(maxsize=200_000)
def _best(catalog: Catalog, asin: str, goal_idx: int) -> tuple[float, tuple[tuple[str, str], ...]]:
    """The reward a product can earn for a goal, and the (option, value) pairs to pick for it."""
    product, goal = catalog.by_asin[asin], catalog.goals[goal_idx]
    wanted = set(_wanted(goal))
    picks = {name: value for name, values in product.options.items() for value in values if value in wanted}
    if isinstance(goal.goal_options, dict):
        named = {n: v for n, v in goal.goal_options.items() if v in product.options.get(n, ())}
        picks = {**picks, **named}
    reward, _ = purchase_reward(product, goal, picks, catalog.prices[asin])
    return reward, tuple(picks.items())
