"""Goals: what the shopper is asked to buy.

The original builds its goals in the order of the products, drawing price limits on the way, and then
shuffles them with the fixed seed 233. Both are repeated here with generators of our own, so that the order
never depends on the worker, on the process or on who used the global generator before.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bpo_envs.tasks import task_digest

if TYPE_CHECKING:
    from bpo_envs.webshop.products import Product

SPLITS = {"test": slice(0, 500), "dev": slice(500, 1500), "train": slice(1500, None), "all": slice(0, None)}
"""The paper's splits, as positions in the shuffled order."""

SHUFFLE_SEED = 233
_PRICE_STEPS = range(10, 1000, 10)
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Goal:
    """One task: an instruction and what fulfils it.

    Attributes:
        asin, category, query, name, product_category: of the product that the instruction was written for.
        instruction_text: what the shopper reads, the price limit included.
        attributes: what the product should have.
        price_upper: the price limit in dollars (a million: none).
        goal_options: the wanted option values: a tuple for human goals, a dict by option name for synthetic.
        weight: upstream's sampling weight.
        nouns: the nouns of ``name`` in order, duplicates kept.
    """

    asin: str
    category: str
    query: str
    name: str
    product_category: str
    instruction_text: str
    attributes: tuple[str, ...]
    price_upper: float
    goal_options: tuple[str, ...] | dict[str, str]
    weight: float
    nouns: tuple[str, ...]

    def digest(self) -> str:
        """sha256 of the goal's content: two goals of one digest are the same task."""
        return task_digest({name: getattr(self, name) for name in self.__slots__})


def human_goals(
    products: Sequence[Product],
    instructions: Mapping[str, list[dict[str, Any]]],
    prices: Mapping[str, float],
    rng: random.Random,
) -> tuple[Goal, ...]:
    """Return the goals of the human instructions, shuffled.

    Args:
        products: in catalogue order, which is the order of the draws.
        instructions: ``items_human_ins``: asin to its instructions.
        prices: asin to price.
        rng: after the draws of the prices; advanced by one draw per goal.

    Raises:
        ValueError: an instruction lacks a field or has one of the wrong type.
    """
    goals = []
    for product in products:
        for row in instructions.get(product.asin, ()):
            attributes = _strings(product, row, "instruction_attributes")
            if not attributes:
                continue
            limit, suffix = _price_limit(prices[product.asin], rng)
            text = _string(product, row, "instruction").strip(".") + suffix
            goals.append(
                _goal(product, text, attributes, limit, _strings(product, row, "instruction_options"))
            )
    return _shuffled(goals)


def synthetic_goals(
    products: Sequence[Product],
    instructions: Mapping[str, dict[str, Any]],
    prices: Mapping[str, float],
    rng: random.Random,
) -> tuple[Goal, ...]:
    """Return one goal per product with an instruction and choice of its options, shuffled.

    Args:
        products: in catalogue order, which is the order of the draws.
        instructions: ``items_ins_v2``: asin to attributes and, for some, an instruction.
        prices: asin to price.
        rng: after the draws of the prices; advanced by one draw per product.

    Raises:
        ValueError: an instruction lacks its attributes or a field has the wrong type.
    """
    goals: list[Goal] = []
    for product in products:
        row = instructions.get(product.asin, {})
        if row.get("instruction") is not None:
            goals.extend(_choices(product, row, *_price_limit(prices[product.asin], rng)))
    uses = Counter(attribute for goal in goals for attribute in goal.attributes)
    weighted = [
        replace(goal, weight=sum(1.0 / uses[a] for a in goal.attributes) / len(goal.attributes))
        for goal in goals
    ]
    return _shuffled(weighted)


def _choices(product: Product, row: dict[str, Any], limit: float, suffix: str) -> Iterator[Goal]:
    instruction = _string(product, row, "instruction")
    attributes = _strings(product, row, "instruction_attributes")
    if not attributes:
        raise ValueError(
            f"product {product.asin} has an instruction but no instruction_attributes; give some"
        )
    names = sorted(product.options)
    for values in itertools.product(*(product.options[name] for name in names)):
        wanted = dict(zip(names, values))
        named = ", and ".join(f"{name}: {value}" for name, value in wanted.items())
        text = instruction + (f" with {named}" if named else "") + suffix
        yield _goal(product, text, attributes, limit, wanted)


def _goal(
    product: Product,
    text: str,
    attributes: tuple[str, ...],
    limit: float,
    options: tuple[str, ...] | dict[str, str],
) -> Goal:
    return Goal(
        asin=product.asin,
        category=product.category,
        query=product.query,
        name=product.title,
        product_category=product.product_category,
        instruction_text=text,
        attributes=attributes,
        price_upper=limit,
        goal_options=options,
        weight=1,
        nouns=product.noun_list,
    )


def _price_limit(price: float, rng: random.Random) -> tuple[float, str]:
    """Draw the limit among the next four steps of ten dollars; dear products have none."""
    steps = [step for step in _PRICE_STEPS if step > price][:4]
    if len(steps) < 2:
        return _NO_LIMIT, ""
    limit = max(rng.sample(steps, 2))
    return float(limit), f", and price lower than {limit:.2f} dollars"


def _shuffled(goals: list[Goal]) -> tuple[Goal, ...]:
    random.Random(SHUFFLE_SEED).shuffle(goals)
    return tuple(goals)


def _string(product: Product, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ValueError(f"an instruction for {product.asin} has {key}={value!r}; expected a string")
    return value


def _strings(product: Product, row: dict[str, Any], key: str) -> tuple[str, ...]:
    value = row.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"an instruction for {product.asin} has {key}={value!r}; expected a list of strings")
    return tuple(value)
