"""Pages: a session as the agent reads it.

A page is a list of *segments*, the texts of the original's web page in order, each with the kind of element
that bore it. The text modes are written from the segments directly. `html.page` writes the same page as HTML;
a test reads it back and finds the same segments.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from bpo_envs.webshop.catalog import Catalog
from bpo_envs.webshop.products import Product
from bpo_envs.webshop.session import (
    DONE,
    ITEM,
    PLAIN,
    RESULTS,
    SEARCH,
    Rules,
    Session,
    goal_of,
    hits,
    product_of,
    results,
    shown_topics,
    url,
)

TEXT, BUTTON, LABEL, LINK = "text", "button", "label", "link"
_HTML_SPACE = " \t\n\f\r"


class Segment(NamedTuple):
    """One text of a page.

    Attributes:
        text: as the page holds it, before any stripping.
        kind: the element: plain ``"text"``, ``"button"``, ``"label"`` of an option value, ``"link"`` to a
            product.
        name: the option's name for a label; else empty.
        role: what the HTML page marks the element as; else empty.
    """

    text: str
    kind: str = TEXT
    name: str = ""
    role: str = ""


def segments(
    catalog: Catalog, session: Session, rules: Rules = PLAIN, score: float | None = None
) -> list[Segment]:
    """Return the segments of the session's page.

    Args:
        catalog: the shop.
        session: where the shopper stands.
        rules: upstream's switches.
        score: the reward in [0, 1], which the last page states; needed there only.
    """
    instruction = Segment(goal_of(catalog, session).instruction_text, role="instruction")
    if session.kind == SEARCH:
        return [
            Segment("WebShop"),
            Segment("Instruction: ", role="heading"),
            instruction,
            Segment("Search", BUTTON),
        ]
    if session.kind == DONE:
        return _done_page(session, score)
    page = [
        Segment("Instruction:", role="heading"),
        instruction,
        Segment("Back to Search", BUTTON),
    ]
    if session.kind == RESULTS:
        return page + _result_list(catalog, session, rules)
    product = product_of(catalog, session)
    assert product is not None  # item and sub pages have a product
    page.append(Segment("< Prev", BUTTON))
    return page + (_item_page(product, rules) if session.kind == ITEM else _sub_page(product, session))


def text(page: list[Segment]) -> str:
    """Write a page in mode ``text``."""
    return " [SEP] ".join([shown.strip() for shown in map(_as_parsed, page) if shown])


def text_rich(page: list[Segment], session: Session) -> str:
    """Write a page in mode ``text_rich``, where buttons, links and choices are marked."""
    address = url(session)
    lines = ""
    for segment in page:
        shown = _as_parsed(segment)
        if not shown:
            continue
        if segment.kind == BUTTON:
            lines += f"[button] {shown} [button_]\n"
        elif segment.kind == LINK:
            clicked = "clicked " if shown in session.asins else ""
            lines += f"\n[{clicked}button] {shown} [{clicked}button_]\n"
        elif segment.kind == LABEL:
            if f'"{shown}"' in address:  # upstream's test; escaped values thus never show as clicked
                lines = f"You have clicked {shown}.\n{lines}  [clicked button] {shown} [clicked button_]\n"
            else:
                lines += f"  [button] {shown} [button_]\n"
        else:
            lines += f"{shown}\n"
    return lines


def _as_parsed(segment: Segment) -> str:
    """The text that an HTML parser hands over; empty where it hands over none."""
    if segment.text.strip(_HTML_SPACE):
        return segment.text
    return "" if "\n" in segment.text else segment.text and " "


def _result_list(catalog: Catalog, session: Session, rules: Rules) -> list[Segment]:
    total = len(hits(catalog, session, rules))
    page = [Segment(f"Page {session.page} (Total results: {total})")]
    if session.page is not None and session.page > 1:
        page.append(Segment("< Prev", BUTTON))
    page.append(Segment("Next >", BUTTON))
    for asin in results(catalog, session, rules):
        product = catalog.by_asin[asin]
        page += (
            Segment(asin, LINK),
            Segment(product.title, role="title"),
            Segment(product.price_text, role="price"),
        )
    return page


def _item_page(product: Product, rules: Rules) -> list[Segment]:
    page = []
    for name, values in product.options.items():
        page.append(Segment(name, role="option"))
        page += [Segment(value, LABEL, name) for value in values]
    page += (
        Segment(product.title, role="title"),
        Segment(f"Price: {product.price_text}", role="price"),
        Segment("Rating: N.A."),
    )
    page += [Segment(topic, BUTTON) for topic in shown_topics(rules)]
    page.append(Segment("Buy Now", BUTTON))
    return page


def _sub_page(product: Product, session: Session) -> list[Segment]:
    if session.topic == "Description":
        return [Segment(product.description, role="info")]
    if session.topic == "Features":
        return [Segment(f" {bullet}", role="info") for bullet in product.bullets]
    if session.topic == "Attributes":
        page = [Segment(f" {attribute}", role="info") for attribute in product.attributes]
        return page + [Segment(text) for text in (product.category, product.query, product.product_category)]
    return []  # reviews: the original's data hold none


def _done_page(session: Session, score: float | None) -> list[Segment]:
    if score is None:
        raise ValueError("the last page states the score, and none was given; pass score=")
    bought = (session.asin or "", _json_in_html(session.options), "None", "None", "None", "None")
    names = ("asin", "options", "attrs", "category", "query", "product category")
    wanted = (
        "asin",
        "options",
        "attrs",
        "price upper",
        "instuction text",
        "category",
        "product category",
        "query",
    )
    return [
        Segment("Thank you for shopping with us!"),
        Segment("Your code: "),
        Segment("None"),
        Segment(" (Paste it in your MTurk interface.)"),
        Segment("Purchased"),
        *(Segment(part, role=role) for pair in zip(names, bought) for part, role in zip(pair, ("", pair[0]))),
        Segment("Target"),
        *(Segment(name) for name in wanted),
        Segment("Goal "),
        Segment("None"),
        Segment("Reward"),
        Segment("Your score (min 0.0, max 1.0)"),
        Segment(repr(score), role="reward"),
        Segment("Reward Details "),
        Segment("None"),
    ]


def _json_in_html(options: dict[str, str]) -> str:
    written = json.dumps(options, sort_keys=True)
    for character in "<>&'":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written
