"""Pages as HTML, with the hooks that agents and scripts for the original look for.

The markup is our own. It holds the same texts in the same order as the original's pages, and the same marks:
``#instruction-text h4``, ``#search_input``, ``.btn``, ``a.product-link``, ``#product-image``,
``input[type=radio][name][value]``, ``p.product-info``, ``.product-title``, ``.product-price``, ``#asin pre``
and ``#reward pre``.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bpo_envs.webshop.session import ITEM, SEARCH, Session

if TYPE_CHECKING:
    from bpo_envs.webshop.pages import Segment

_BY_ROLE = {
    "heading": '<div id="instruction-text"><h4>{text}<br>',
    "instruction": "{text}</h4></div>\n",  # no line break before it: it would be part of the text
    "title": '<h4 class="product-title">{text}</h4>\n',
    "price": '<h5 class="product-price">{text}</h5>\n',
    "info": '<p class="product-info">{text}</p>\n',
    "option": "<h4>{text}</h4>\n",
    "asin": '<div id="asin"><pre>{text}</pre></div>\n',
    "options": '<div id="options"><pre>{text}</pre></div>\n',
    "reward": '<div id="reward"><pre>{text}</pre></div>\n',
}
_HEAD = '<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n'
_SEARCH_BAR = '<input type="text" id="search_input" name="search_query" placeholder="Search...">\n'


def html(page: list[Segment], session: Session, image: str = "") -> str:
    """Write a page as HTML.

    Args:
        page: its segments.
        session: where the shopper stands; chosen options are checked.
        image: address of the product's picture, for item pages.
    """
    body = [_element(segment, session) for segment in page]
    if session.kind == SEARCH:
        body.insert(-1, _SEARCH_BAR)
    if session.kind == ITEM:
        body.append(f'<img id="product-image" src="{escape(image)}" alt="">\n')
    return f"{_HEAD}{''.join(body)}</body></html>"


def _element(segment: Segment, session: Session) -> str:
    text = escape(segment.text)
    if segment.kind == "button":
        return f'<button type="submit" class="btn">{text}</button>\n'
    if segment.kind == "link":
        return f'<a class="product-link" href="#">{text}</a>\n'
    if segment.kind == "label":
        checked = " checked" if session.options.get(segment.name) == segment.text else ""
        name = escape(segment.name)
        return f'<input type="radio" name="{name}" value="{text}"{checked}><label>{text}</label>\n'
    return _BY_ROLE.get(segment.role, "<p>{text}</p>\n").format(text=text)
