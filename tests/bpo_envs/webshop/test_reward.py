"""Rewards: the original's on recorded purchases, and single rules on small products."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.webshop.catalog import load_catalog
from bpo_envs.webshop.goals import Goal
from bpo_envs.webshop.products import Product
from bpo_envs.webshop.reward import normalize_color, purchase_reward, token_set_ratio


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def golden(root):
    return root / "tests" / "fixtures" / "webshop_v1"


def wrong_rewards(cases, catalogs):
    """Cases whose reward or parts (values, types, order) differ from the recorded ones."""
    for case in cases:
        catalog = catalogs[case.get("human_goals", 0)]
        product, goal = catalog.by_asin[case["asin"]], catalog.goals[case["goal_idx"]]
        reward, info = purchase_reward(product, goal, case["options"], case["price"])
        if reward != case["reward"] or json.dumps(info) != json.dumps(case["info"]):
            yield case, reward, info


def test_rewards_and_their_parts_are_the_originals(golden):
    cases = lines(golden / "reward_cases.jsonl.gz")
    assert len(cases) == 1500
    assert list(wrong_rewards(cases, [load_catalog(goals="synthetic"), load_catalog(goals="human")])) == []


def test_rewards_on_the_real_products_are_the_originals(shared):
    folder = shared / "data" / "webshop" / "real1000"
    cases = lines(folder / "golden" / "reward_cases_seed42.jsonl.gz")
    assert list(wrong_rewards(cases, [load_catalog(folder)])) == []


def test_likeness_of_texts_is_thefuzz_s(golden):
    cases = lines(golden / "fuzz_cases.jsonl.gz")
    assert len(cases) == 545
    assert [c for c in cases if token_set_ratio(c["a"], c["b"]) != c["token_set_ratio"]] == []


def test_colours_are_normalised_as_in_the_original(golden):
    cases = lines(golden / "colour_cases.jsonl.gz")
    as_value = lambda value: tuple(value) if isinstance(value, list) else value  # noqa: E731
    assert len(cases) == 307
    assert [c for c in cases if normalize_color(as_value(c["value"])) != as_value(c["normalized"])] == []


@given(st.text(max_size=20), st.text(max_size=20))
def test_likeness_does_not_depend_on_order_case_or_repetition(a, b):
    score = token_set_ratio(a, b)
    assert 0 <= score <= 100
    assert score == token_set_ratio(b, a)
    assert token_set_ratio(a + " " + b, b + " " + a) in (0, 100)  # 0: nothing left to compare


PRODUCT = Product(
    asin="B000000001",
    title="Acme Desk Lamp",
    description="Gives WARM light",
    bullets=("dimmable bulb", "long cord"),
    attributes=("easy clean",),
    options={"color": ("deep navy", "rose"), "size": ("small", "large")},
    query="lamps",
    category="garden",
    product_category="Home › Lighting › Lamps",
    nouns=frozenset({"acme", "desk", "lamp"}),
    noun_list=("acme", "desk", "lamp"),
    price_text="$20.0",
    pricing=(20.0,),
    image="",
)
GOAL = Goal(
    asin="B000000001",
    category="garden",
    query="lamps",
    name="Acme Desk Lamp",
    product_category="Home › Lighting › Lamps",
    instruction_text="a lamp",
    attributes=("easy clean", "warm light"),
    price_upper=30.0,
    goal_options={"color": "navy", "size": "small"},
    weight=1.0,
    nouns=("acme", "desk", "lamp"),
)
CHOSEN = {"color": "deep navy", "size": "small"}


def test_the_wanted_product_with_the_wanted_options_scores_one():
    reward, info = purchase_reward(PRODUCT, GOAL, CHOSEN, 20.0)
    assert reward == 1.0
    assert info == {
        "r_type": 1.0, "query_match": True, "category_match": True, "title_score": 1.0,
        "r_att": 1.0, "w_att": 0.4, "r_option": 1.0, "w_option": 0.4, "r_price": True, "w_price": 0.2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "price", "expected"),
    [
        ({}, 20.0, 3 / 5),
        ({"color": "deep navy"}, 20.0, 4 / 5),
        ({"color": "deep navy", "size": "large"}, 20.0, 4 / 5),
        (CHOSEN, 30.01, 4 / 5),
        (CHOSEN, 30.0, 1.0),
    ],
)
def test_each_option_and_the_price_count_one_part_of_five(chosen, price, expected):
    assert purchase_reward(PRODUCT, GOAL, chosen, price)[0] == expected


def test_an_attribute_may_stand_in_the_list_or_in_any_text():
    goal = replace(GOAL, attributes=("clean easy", "desk lamp", "bulb long", "gives warm", "waterproof"))
    assert purchase_reward(PRODUCT, goal, CHOSEN, 20.0)[1]["r_att"] == 4 / 5


def test_an_attribute_in_capitals_is_not_found_in_the_texts():
    goal = replace(GOAL, attributes=("Warm Light",))
    assert purchase_reward(PRODUCT, goal, CHOSEN, 20.0)[1]["r_att"] == 0.0


def test_a_goal_without_options_has_no_option_parts():
    info = purchase_reward(PRODUCT, replace(GOAL, goal_options=()), CHOSEN, 20.0)[1]
    assert "r_option" not in info
    assert "w_option" not in info


@pytest.mark.parametrize(
    ("nouns", "same_query", "expected"),
    [
        (("acme", "desk", "lamp"), False, 1.0),  # 3 of 3 nouns
        (("lamp", "rug", "soap", "hat", "mat"), False, 0.5),  # 1 of 5 is not above 0.2
        (("lamp", "rug", "soap", "hat", "mat"), True, 1.0),
        (("lamp", *["rug"] * 10), True, 0.1),  # 1 of 11: repetitions count
        (("rug",), True, 0.0),
        ((), False, 0.5),  # no nouns at all stand for 0.2
    ],
)
def test_the_type_factor_follows_query_and_title(nouns, same_query, expected):
    goal = replace(GOAL, nouns=nouns, query="lamps" if same_query else "rugs", product_category="")
    assert purchase_reward(PRODUCT, goal, CHOSEN, 20.0)[1]["r_type"] == expected


def test_two_shared_levels_of_the_category_are_a_match_in_any_order():
    goal = replace(GOAL, product_category="Lamps›Home")
    assert purchase_reward(PRODUCT, goal, CHOSEN, 20.0)[1]["category_match"] is True
    goal = replace(GOAL, product_category="Home › Rugs")
    assert purchase_reward(PRODUCT, goal, CHOSEN, 20.0)[1]["category_match"] is False


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3-light", "light"),  # a part of a word counts
        ("navy rose", "navy"),  # the first of the list, not of the text
        ("rose navy", "navy"),
        ("crème", "crème"),
        (("color", "navy"), "navy"),
        (("color", "deep navy"), ("color", "deep navy")),  # in a pair only a whole element counts
    ],
)
def test_the_first_colour_of_the_list_stands_for_a_value(value, expected):
    assert normalize_color(value) == expected
