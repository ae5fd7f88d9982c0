"""Products: rows of ``items_shuffle`` as the shop shows and sells them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ASIN_LENGTH = 10
_NO_PRICE = 100.0


@dataclass(frozen=True, slots=True)
class Product:
    """One product.

    Attributes:
        asin: its identifier, ten characters.
        title, description, bullets: its texts.
        attributes: what it has, for the reward; never shown unless the environment has ``show_attrs``.
        options: option name to values, lower-case, in the order of the file.
        query: the search term it was found by.
        category, product_category: coarse class, and path such as ``"Home › Lamps"``.
        nouns, noun_list: the nouns of the title: distinct, and in order with duplicates.
        price_text: the price as shown, ``"$9.5"`` or ``"$9.5 to $20.0"``.
        pricing: one price, or the ends of its range, in dollars.
        image: address of its picture (HTML only).
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    attributes: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    query: str
    category: str
    product_category: str
    nouns: frozenset[str]
    noun_list: tuple[str, ...]
    price_text: str
    pricing: tuple[float, ...]
    image: str

    def index_text(self) -> str:
        """The text that the search engine indexes."""
        first_bullet = self.bullets[0] if self.bullets else ""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.title, self.description, first_bullet, options]).lower()


def kept_rows(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows that become products: upstream drops repeated and malformed identifiers in silence.

    Raises:
        ValueError: a row is no object, or has no identifier.
    """
    seen = {"nan"}
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"a row of the products is {row!r}; expected an object with an asin")
        asin = _string(row, "asin")
        if asin not in seen and len(asin) <= _ASIN_LENGTH:
            seen.add(asin)
            yield row


def parse_product(
    row: dict[str, Any], attributes: Iterable[str], nouns_of: Callable[[str, str], Iterable[str]]
) -> Product:
    """Make a product of its row.

    Args:
        row: one row of ``items_shuffle``.
        attributes: its attributes in ``items_ins_v2``.
        nouns_of: identifier and title to the nouns of the title, in order.

    Raises:
        ValueError: a field is missing or malformed; the original crashes there without saying where.
    """
    pricing = _pricing(row)
    title = _string(row, "name")
    noun_list = tuple(nouns_of(row["asin"], title))
    return Product(
        asin=row["asin"],
        title=title,
        description=_string(row, "full_description"),
        bullets=_bullets(row),
        attributes=tuple(attributes),
        options=_options(row),
        query=_string(row, "query").lower().strip(),
        category=_string(row, "category"),
        product_category=_string(row, "product_category"),
        nouns=frozenset(noun_list),
        noun_list=noun_list,
        price_text=" to ".join(f"${price}" for price in pricing),
        pricing=pricing,
        image=str((row.get("images") or [""])[0]),
    )


def draw_prices(products: Iterable[Product], rng: random.Random) -> dict[str, float]:
    """Return every product's price in dollars: one draw for each that states a range, in order."""
    return {p.asin: p.pricing[0] if len(p.pricing) == 1 else rng.uniform(*p.pricing) for p in products}


def _string(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise _malformed(row, key, "a string")
    return value


def _bullets(row: dict[str, Any]) -> tuple[str, ...]:
    value = row.get("small_description")
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(bullet, str) for bullet in value):
        return tuple(value)
    raise _malformed(row, "small_description", "a string or a list of strings")


def _options(row: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    options = {}
    for name, choices in (row.get("customization_options") or {}).items():
        if choices is None:
            continue
        try:
            values = tuple(choice["value"].strip().replace("/", " | ").lower() for choice in choices)
        except (TypeError, KeyError, AttributeError):
            raise _malformed(row, "customization_options", "lists of {'value': text} by name") from None
        options[name.lower()] = values
    return options


def _pricing(row: dict[str, Any]) -> tuple[float, ...]:
    pricing = row.get("pricing")
    if pricing is None or pricing == "":
        return (_NO_PRICE,)
    try:
        pieces = pricing.split("$")[1:3]
        prices = tuple(float("".join(c for c in piece if c in "0123456789.")) for piece in pieces)
    except (AttributeError, ValueError):
        prices = ()
    if not prices:
        raise _malformed(row, "pricing", "'' or dollars such as '$1,299.00' or '$9.50 - $20.00'")
    return prices


def _malformed(row: Mapping[str, Any], key: str, expected: str) -> ValueError:
    name = row.get("asin", "without asin")
    return ValueError(
        f"product {name}: {key} is {row.get(key)!r}; expected {expected}. Correct the row or take it out"
    )
