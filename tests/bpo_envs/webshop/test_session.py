"""The state machine: upstream's rules and oddities, one by one, on a shop of a few lamps."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.webshop.catalog import load_catalog
from bpo_envs.webshop.session import PLAIN, Rules, Session, act, clickables, parse_action, results, url
from webshop_data import folder, row

ODD_VALUES = ["features", "black [2-pack]", "", "next >", "reviews of lamps"]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    lamps = [row(f"B0000000{i:02}", name=f"Lamp {i}") for i in range(12)]
    odd = row("B0000000ZZ", name="Curio", customization_options={"Style": [{"value": v} for v in ODD_VALUES]})
    twins = {"Color": [{"value": "Red"}], "Shade": [{"value": "Red"}]}
    double = row("B0000000YY", name="Gizmo", customization_options=twins)
    return load_catalog(folder(tmp_path_factory.mktemp("shop"), [*lamps, odd, double]))


@pytest.fixture
def shop(catalog):
    """A session, a function that acts in it, and one that says what can be clicked."""
    return Shop(catalog)


class Shop:
    def __init__(self, catalog, rules=PLAIN):
        self.catalog, self.rules, self.session = catalog, rules, Session(0)

    def __call__(self, *actions):
        valid = [act(self.catalog, self.session, action, self.rules) for action in actions]
        return valid[-1]

    @property
    def clickable(self):
        return list(clickables(self.catalog, self.session, self.rules))

    @property
    def listed(self):
        return results(self.catalog, self.session, self.rules)


@pytest.mark.parametrize(
    ("action", "parsed"),
    [
        ("search[Red Shoes]", ("search", "red shoes")),
        ("search[shoes] now", ("search", "shoes")),
        ("search[a]b]", ("search", "a]b")),
        ("search[ ]", ("search", " ")),
        ("click[black [2-pack]]", ("click[black ", "2-pack]")),
        ("I will search[x]", ("I will search", "x")),
        ("search[]", None),
        ("search", None),
        ("search[a\nb]", None),
        ("\nsearch[a]", None),
        ("", None),
    ],
)
def test_actions_are_read_by_upstreams_greedy_expression(action, parsed):
    assert parse_action(action) == parsed


@given(st.text("[]a\n]B ", max_size=12))
def test_any_action_is_read_as_by_upstreams_expression(action):
    match = re.match(r"(.+)\[(.+)\]", action)
    assert parse_action(action) == (match and (match[1], match[2].lower()))


def test_a_long_row_of_brackets_is_read_at_once():
    assert parse_action("[" * 1_000_000) is None


@pytest.mark.parametrize(
    "action",
    ["click[search]", "Click[search]", "Search[lamp]", "I will search[lamp]", "buy[lamp]", "click[]", "?"],
)
def test_an_invalid_action_changes_nothing(shop, action):
    assert shop(action) is False
    assert shop.session == Session(0)


def test_a_search_lists_ten_of_its_results(shop):
    assert shop("search[lamp]")
    assert len(shop.listed) == 10
    assert shop.clickable == ["back to search", "next >", *(asin.lower() for asin in shop.listed)]


def test_the_next_page_is_offered_past_the_end_too(shop):
    shop("search[lamp]", "click[next >]", "click[next >]", "click[next >]")
    assert (shop.session.page, shop.listed) == (4, ())
    assert shop.clickable == ["back to search", "< prev", "next >"]


def test_turning_a_page_counts_as_a_search(shop):
    shop("search[lamp]", "click[next >]", "click[< prev]")
    assert (shop.session.page, shop.session.actions) == (1, {"search": 3})


def test_a_product_is_opened_in_any_case(shop):
    shop("search[lamp]")
    first, second = shop.listed[:2]
    assert shop(f"click[{first}]", "click[< prev]", f"click[{second.lower()}]")
    assert shop.session.asin == second
    assert shop.session.asins == {first, second}


def test_an_item_page_offers_its_sub_pages_and_options(shop):
    shop("search[lamp]")
    shop(f"click[{shop.listed[0]}]")
    buttons = ["back to search", "< prev", "description", "features", "reviews", "buy now"]
    assert shop.clickable == [*buttons, "black", "white"]


def test_attributes_are_a_sub_page_where_the_rules_say_so(catalog):
    shop = Shop(catalog, Rules(show_attrs=True))
    shop("search[curio]", "click[b0000000zz]")
    assert shop.clickable[:6] == [
        "back to search",
        "< prev",
        "description",
        "features",
        "reviews",
        "attributes",
    ]


def test_a_choice_of_one_option_replaces_the_last(shop):
    shop("search[lamp 1]")
    shop(f"click[{shop.listed[0]}]", "click[black]", "click[White]")
    assert (shop.session.options, shop.session.actions["options"]) == ({"color": "white"}, 2)


def test_options_survive_a_sub_page_and_not_the_results(shop):
    shop("search[lamp 1]")
    shop(f"click[{shop.listed[0]}]", "click[black]", "click[features]")
    assert (shop.session.kind, shop.session.topic, shop.clickable) == (
        "sub",
        "Features",
        ["back to search", "< prev"],
    )
    shop("click[< prev]")
    assert (shop.session.kind, shop.session.options) == ("item", {"color": "black"})
    shop("click[< prev]")
    assert (shop.session.kind, shop.session.options, shop.session.asin) == ("results", {}, None)


def test_back_to_search_forgets_everything(shop):
    shop("search[lamp 1]")
    shop(f"click[{shop.listed[0]}]", "click[black]", "click[back to search]")
    assert shop.session == Session(0)


def test_searching_is_possible_on_every_page(shop):
    shop("search[curio]", "click[b0000000zz]", "click[buy now]")
    assert shop.session.done
    assert shop("search[lamp]")
    assert shop.session.kind == "results"


def test_after_the_purchase_nothing_can_be_clicked(shop):
    shop("search[curio]", "click[b0000000zz]", "click[buy now]")
    assert shop.clickable == []
    assert shop("click[back to search]") is False


def test_an_option_that_equals_a_button_keeps_its_place_and_opens_its_page(shop):
    shop("search[curio]", "click[b0000000zz]")
    assert shop.clickable.index("features") == 3
    shop("click[features]")
    assert (shop.session.kind, shop.session.options) == ("sub", {})


def test_an_option_named_like_the_next_button_is_an_option_on_an_item_page(shop):
    shop("search[curio]", "click[b0000000zz]", "click[next >]")
    assert (shop.session.kind, shop.session.options) == ("item", {"style": "next >"})


@pytest.mark.parametrize("value", ["black [2-pack]", ""])
def test_some_values_are_listed_and_cannot_be_clicked(shop, value):
    shop("search[curio]", "click[b0000000zz]")
    assert value in shop.clickable
    assert shop(f"click[{value}]") is False


def test_of_options_that_share_a_value_the_later_one_is_set(shop):
    shop("search[gizmo]", "click[b0000000yy]", "click[red]")
    assert shop.session.options == {"shade": "red"}


def test_a_query_that_names_the_results_page_leads_back_to_page_nought(shop):
    shop("search[curio search_results]", "click[b0000000zz]", "click[description]", "click[< prev]")
    assert (shop.session.kind, shop.session.page, shop.listed) == ("results", 0, ())
    assert shop.clickable == ["back to search", "next >"]


def test_a_query_that_names_the_item_page_leads_from_a_sub_page_to_the_results(shop):
    shop("search[curio item_page]", "click[b0000000zz]", "click[description]", "click[< prev]")
    assert (shop.session.kind, shop.session.page) == ("results", 1)


@pytest.mark.parametrize("word", ["done", "item_sub_page"])
def test_other_page_names_in_a_query_do_no_harm(shop, word):
    shop(f"search[curio {word}]", "click[b0000000zz]", "click[description]", "click[< prev]")
    assert shop.session.kind == "item"


def test_a_blank_search_finds_nothing(shop):
    assert shop("search[ ]")
    assert (shop.session.keywords, shop.listed) == (("", ""), ())


def test_urls_are_upstreams(shop):
    base = "http://127.0.0.1:3000"
    assert url(shop.session) == f"{base}/0"
    shop("search[odd Curio]")
    assert url(shop.session) == f"{base}/search_results/0/odd+curio/1"
    shop("click[b0000000zz]", "click[reviews of lamps]")
    assert url(shop.session) == f'{base}/item_page/0/B0000000ZZ/odd+curio/1/{{"style": "reviews of lamps"}}'
    shop("click[reviews]")
    assert url(shop.session) == (
        f"{base}/item_sub_page/0/B0000000ZZ/odd+curio/1/Reviews/{{'style': 'reviews of lamps'}}"
    )
    shop("click[< prev]", "click[buy now]")
    assert url(shop.session) == f"{base}/done/0/B0000000ZZ/{{'style': 'reviews of lamps'}}"


def test_special_words_are_plain_text_unless_the_rules_say_otherwise(catalog):
    plain, special = Shop(catalog), Shop(catalog, Rules(special_words=True))
    assert plain("search[<c> garden]") and special("search[<c> garden and more]")
    assert special.listed == tuple(f"B0000000{i:02}" for i in range(10))
    assert plain.listed == ()


@pytest.mark.parametrize("action", ["search[<c>]", "search[<a> oak]"])
def test_special_words_that_crash_upstream_do_nothing(catalog, action):
    shop = Shop(catalog, Rules(special_words=True))
    assert shop(action) is False
    assert shop.session == Session(0)


def test_random_products_depend_on_the_session_alone(catalog):
    one, other = (Shop(catalog, Rules(special_words=True)) for _ in range(2))
    one("search[<r>]")
    other("search[<r>]")
    first = one.listed
    assert len(set(first)) == 10
    assert first == other.listed == one.listed
    one("search[<r>]")
    assert one.listed != first
