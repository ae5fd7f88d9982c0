"""The score of a purchase: how much of the goal the bought product fulfils.

With n_att and n_opt the numbers of fulfilled attributes and options, and the price within the limit or not,

    reward = r_type (n_att + n_opt + r_price) / (attributes + options + 1)

(WebShop, arXiv 2207.01206, Eq 1), where r_type cuts the reward if the product is of another type. Texts are
compared as sets of words by `token_set_ratio`. The original's oddities are kept, for scores must be
comparable: option values are reduced to the first colour word that they contain, and a synthetic goal's
option is compared as the text of a (name, value) pair.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz, utils

from bpo_envs.assets import asset

if TYPE_CHECKING:
    from bpo_envs.webshop.goals import Goal
    from bpo_envs.webshop.products import Product

MATCH = 85  # texts match if their ratio is greater
_CACHED = 1 << 16  # remembered comparisons
_NOT_COMPARED = dict.fromkeys(range(128, 256))  # Latin-1's letters and signs are dropped, all others stay


def token_set_ratio(a: str, b: str) -> int:
    """Return how alike two texts are as sets of words, 0 to 100; 0 if either is empty.

    Source: thefuzz 0.22, whose pre-processing and rounding are added to rapidfuzz here.
    """
    left, right = _words(a), _words(b)
    return round(fuzz.token_set_ratio(left, right)) if left and right else 0


@lru_cache(maxsize=_CACHED)
def _words(text: str) -> str:
    return utils.default_process(text.translate(_NOT_COMPARED))


@cache
def _colours() -> tuple[str, ...]:
    return tuple(json.loads(asset("webshop", "colour_list_ordered.json").read_text(encoding="utf-8")))


def normalize_color(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Return the first word of the colour list that is in ``value``, else ``value``.

    In a string any part counts ("3-light" is "light"), in a tuple only a whole element.
    """
    return next((colour for colour in _colours() if colour in value), value)


def purchase_reward(
    product: Product, goal: Goal, chosen: Mapping[str, str], price: float
) -> tuple[float, dict[str, Any]]:
    """Score buying ``product`` with the ``chosen`` options (name to value) at ``price`` dollars.

    Returns:
        The reward in [0, 1], and its parts: ``r_*`` is the fulfilled share (``r_price`` a bool), ``w_*`` its
        weight in the reward, ``r_type`` the factor of the type and ``query_match``, ``category_match`` and
        ``title_score`` what it follows from. Only a goal with options has ``r_option`` and ``w_option``.
    """
    wanted = goal.goal_options.items() if isinstance(goal.goal_options, dict) else goal.goal_options
    attributes, options = len(goal.attributes), len(goal.goal_options)
    parts = attributes + options + 1

    r_type, info = _type_match(product, goal)
    n_attributes = _attribute_matches(product, goal.attributes)
    n_options = sum(any(_option_matches(value, option) for value in chosen.values()) for option in wanted)
    r_price = price <= goal.price_upper

    info = {"r_type": r_type, "r_att": n_attributes / attributes, "w_att": attributes / parts, **info}
    if options:
        info |= {"r_option": n_options / options, "w_option": options / parts}
    info |= {"r_price": r_price, "w_price": 1 / parts}
    return (n_attributes + n_options + r_price) / parts * r_type, info


def _type_match(product: Product, goal: Goal) -> tuple[float, dict[str, Any]]:
    query_match = product.query == goal.query
    category_match = len(_levels(product.product_category) & _levels(goal.product_category)) >= 2
    title_score = len(product.nouns.intersection(goal.nouns)) / len(goal.nouns) if goal.nouns else 0.2
    # A title that shares nothing overrules a matching query or category.
    if title_score == 0:
        r_type = 0.0
    elif title_score < 0.1:
        r_type = 0.1
    else:
        r_type = 1.0 if query_match or category_match or title_score > 0.2 else 0.5
    return r_type, {"query_match": query_match, "category_match": category_match, "title_score": title_score}


@lru_cache(maxsize=_CACHED)
def _levels(product_category: str) -> frozenset[str]:
    """The levels of a path such as "Home › Lamps"."""
    return frozenset(level.strip() for level in product_category.split("›"))


def _attribute_matches(product: Product, wanted: tuple[str, ...]) -> int:
    """How many attributes the product has, by its list of attributes or, failing that, by its texts."""
    texts: tuple[str, ...] = ()
    matches = 0
    for attribute in wanted:
        if _listed(product.attributes, attribute):
            matches += 1
            continue
        texts = texts or tuple(
            text.lower() for text in (product.title, " ".join(product.bullets), product.description)
        )
        matches += any(attribute in text for text in texts)
    return matches


@lru_cache(maxsize=_CACHED)
def _listed(attributes: tuple[str, ...], wanted: str) -> bool:
    return any(token_set_ratio(attribute, wanted) > MATCH for attribute in attributes)


@lru_cache(maxsize=_CACHED)
def _option_matches(chosen: str, wanted: str | tuple[str, str]) -> bool:
    return token_set_ratio(str(normalize_color(chosen)), str(normalize_color(wanted))) > MATCH
