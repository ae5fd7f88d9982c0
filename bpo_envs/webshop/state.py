"""A session as plain data, and back: what a snapshot of the environment holds.

Data that come from a file are not to be trusted: everything is checked against the catalogue before a session
is made of it, so that no later step can fail on it.
"""

from __future__ import annotations

from typing import Any

from bpo_envs.webshop.catalog import Catalog
from bpo_envs.webshop.session import KINDS, RESULTS, SEARCH, SUB, TOPICS, Session

_FIELDS = ("goal_idx", "kind", "topic", "keywords", "page", "asin", "asins", "options", "actions", "steps")
_ACTIONS = ("search", "asin", "options", "purchase", *TOPICS)


def to_data(session: Session) -> dict[str, Any]:
    """Return a session as plain data, independent of it."""
    return {
        "goal_idx": session.goal_idx,
        "kind": session.kind,
        "topic": session.topic,
        "keywords": session.keywords,
        "page": session.page,
        "asin": session.asin,
        "asins": tuple(sorted(session.asins)),
        "options": dict(session.options),
        "actions": dict(session.actions),
        "steps": session.steps,
    }


def from_data(catalog: Catalog, data: Any) -> Session:
    """Make the session that `to_data` described.

    Raises:
        ValueError: the data are no session of this catalogue; the message names the field.
    """
    if not isinstance(data, dict) or set(data) != set(_FIELDS):
        given = sorted(map(str, data)) if isinstance(data, dict) else type(data).__name__
        raise ValueError(f"a WebShop state is a dict of {', '.join(_FIELDS)}; given: {given}")
    _check(
        data, "goal_idx", f"0 to {len(catalog.goals) - 1}", _is_count(data["goal_idx"], len(catalog.goals))
    )
    _check(data, "kind", f"one of {KINDS}", data["kind"] in KINDS)
    _check(data, "steps", "an integer >= 0", _is_count(data["steps"]))
    _check_place(catalog, data)
    _check_history(catalog, data)
    return Session(
        goal_idx=data["goal_idx"],
        kind=data["kind"],
        topic=data["topic"],
        keywords=None if data["keywords"] is None else tuple(data["keywords"]),
        page=data["page"],
        asin=data["asin"],
        asins=set(data["asins"]),
        options=dict(data["options"]),
        actions=dict(data["actions"]),
        steps=data["steps"],
    )


def _check_place(catalog: Catalog, data: dict[str, Any]) -> None:
    kind, keywords = data["kind"], data["keywords"]
    topics = TOPICS if kind == SUB else (None,)
    _check(data, "topic", f"one of {topics} on a page of kind {kind!r}", data["topic"] in topics)
    if kind == SEARCH:
        _check(data, "keywords", "None on the search page", keywords is None)
        _check(data, "page", "None on the search page", data["page"] is None)
    else:
        _check(
            data, "keywords", "a non-empty sequence of strings", _are_strings(keywords) and len(keywords) > 0
        )
        _check(data, "page", "an integer >= 0", _is_count(data["page"]))
    if kind in (SEARCH, RESULTS):
        _check(data, "asin", f"None on a page of kind {kind!r}", data["asin"] is None)
    else:
        _check(data, "asin", "a product of the catalogue", _is_product(catalog, data["asin"]))


def _check_history(catalog: Catalog, data: dict[str, Any]) -> None:
    asins, options, actions = data["asins"], data["options"], data["actions"]
    _check(
        data,
        "asins",
        "products of the catalogue",
        _are_strings(asins) and all(a in catalog.by_asin for a in asins),
    )
    offered = {} if data["asin"] is None else catalog.by_asin[data["asin"]].options
    _check(
        data,
        "options",
        "values that the product offers, by option name",
        isinstance(options, dict) and all(value in offered.get(name, ()) for name, value in options.items()),
    )
    _check(
        data,
        "actions",
        f"counts >= 0 by any of {_ACTIONS}",
        isinstance(actions, dict) and all(k in _ACTIONS and _is_count(n) for k, n in actions.items()),
    )


def _check(data: dict[str, Any], name: str, expected: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"WebShop state: {name} is {data[name]!r}; expected {expected}")


def _is_count(value: Any, below: int = 2**31) -> bool:
    return type(value) is int and 0 <= value < below


def _are_strings(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value)


def _is_product(catalog: Catalog, value: Any) -> bool:
    return isinstance(value, str) and value in catalog.by_asin
