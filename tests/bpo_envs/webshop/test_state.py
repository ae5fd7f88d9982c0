"""A session as plain data: faithful, independent, and checked on the way back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.webshop.catalog import load_catalog
from bpo_envs.webshop.session import Session, act, clickables
from bpo_envs.webshop.state import from_data, to_data


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def wander(catalog, choices):
    """A session after a walk: each number chooses among a few searches and what can be clicked."""
    shopper = Session(0)
    for choice in choices:
        actions = ["search[lamp]", "search[x]", "?", *(f"click[{c}]" for c in clickables(catalog, shopper))]
        act(catalog, shopper, actions[choice % len(actions)])
        shopper.steps += 1
    return shopper


walks = st.lists(st.integers(0, 40), max_size=12)


@given(walks)
def test_any_session_comes_back_equal(catalog, choices):
    shopper = wander(catalog, choices)
    assert from_data(catalog, to_data(shopper)) == shopper


@given(walks)
def test_data_that_went_through_json_come_back_equal(catalog, choices):
    shopper = wander(catalog, choices)
    assert from_data(catalog, json.loads(json.dumps(to_data(shopper)))) == shopper


def test_data_and_session_share_nothing(catalog):
    shopper = wander(catalog, [0, 5, 9])
    data = to_data(shopper)
    again = from_data(catalog, data)
    before = to_data(shopper)
    act(catalog, shopper, "click[back to search]")
    assert to_data(again) == data == before


@pytest.mark.parametrize("data", [None, [], {}, {"goal_idx": 0}, {**to_data(Session(0)), "more": 1}])
def test_data_of_another_shape_are_refused(catalog, data):
    with pytest.raises(ValueError, match="a WebShop state is a dict of goal_idx, kind"):
        from_data(catalog, data)


ON_AN_ITEM = {
    "goal_idx": 0,
    "kind": "item",
    "topic": None,
    "keywords": ("lamp",),
    "page": 1,
    "asin": "B0Z6N5V7WQ",
    "asins": ("B0Z6N5V7WQ",),
    "options": {},
    "actions": {"search": 1, "asin": 1},
    "steps": 2,
}


def test_the_state_that_the_next_test_spoils_is_sound(catalog):
    assert to_data(from_data(catalog, ON_AN_ITEM)) == ON_AN_ITEM


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("goal_idx", -1),
        ("goal_idx", 5296),
        ("goal_idx", True),
        ("goal_idx", "0"),
        ("kind", "shop"),
        ("kind", ["item"]),
        ("topic", "Features"),
        ("keywords", None),
        ("keywords", ()),
        ("keywords", "lamp"),
        ("keywords", (1,)),
        ("page", -1),
        ("page", 1.0),
        ("page", None),
        ("asin", None),
        ("asin", "B000000000"),
        ("asin", ["B0Z6N5V7WQ"]),
        ("asins", ("B000000000",)),
        ("asins", None),
        ("options", {"color": "black"}),
        ("options", {"color": []}),
        ("options", None),
        ("actions", {"fly": 1}),
        ("actions", {"search": -1}),
        ("actions", None),
        ("steps", -1),
        ("steps", None),
    ],
)
def test_a_field_that_cannot_be_is_named(catalog, name, value):
    with pytest.raises(ValueError, match=f"WebShop state: {name} is "):
        from_data(catalog, {**ON_AN_ITEM, name: value})


@pytest.mark.parametrize(("name", "value"), [("keywords", ("lamp",)), ("page", 1), ("asin", "B0Z6N5V7WQ")])
def test_the_search_page_has_no_search_and_no_product(catalog, name, value):
    with pytest.raises(ValueError, match=f"WebShop state: {name} is "):
        from_data(catalog, {**to_data(Session(0)), name: value})


def test_a_sub_page_has_a_topic(catalog):
    with pytest.raises(ValueError, match="WebShop state: topic is None"):
        from_data(catalog, {**ON_AN_ITEM, "kind": "sub"})
