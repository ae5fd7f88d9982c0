"""Rows of the products' file, as upstream's loader reads them; where it crashes, an error that says why."""

from __future__ import annotations

import random

import pytest

from bpo_envs.webshop.products import draw_prices, kept_rows, parse_product
from webshop_data import row


def parse(**fields):
    return parse_product(row(**fields), ["solid oak"], lambda asin, title: title.lower().split())


def test_repeated_and_malformed_identifiers_are_dropped():
    asins = ["B000000001", "nan", "B000000001", "B0000000011", "B000000002"]
    assert [kept["asin"] for kept in kept_rows(map(row, asins))] == ["B000000001", "B000000002"]


@pytest.mark.parametrize(
    ("pricing", "prices", "shown"),
    [
        ("$9.50", (9.5,), "$9.5"),
        ("$1,299.00", (1299.0,), "$1299.0"),
        ("$12.34 - $56.78", (12.34, 56.78), "$12.34 to $56.78"),
        ("$1.00$2.00$3.00", (1.0, 2.0), "$1.0 to $2.0"),
        ("$40", (40.0,), "$40.0"),
        ("", (100.0,), "$100.0"),
        (None, (100.0,), "$100.0"),
    ],
)
def test_prices_are_read_and_shown_as_upstream_does(pricing, prices, shown):
    product = parse(pricing=pricing)
    assert (product.pricing, product.price_text) == (prices, shown)


@pytest.mark.parametrize("pricing", ["Currently unavailable", "$", "$1.2.3", 12.5])
def test_a_price_without_dollars_is_an_error_that_names_the_product(pricing):
    with pytest.raises(ValueError, match=r"product B000000001: pricing is .*expected '' or dollars"):
        parse(pricing=pricing)


def test_options_are_lower_case_with_slashes_spaced():
    options = {
        "Size": [{"value": " 5/8 Inch "}],
        "Fit": None,
        "COLOR": [{"value": "Black"}, {"value": "Red"}],
    }
    assert parse(customization_options=options).options == {
        "size": ("5 | 8 inch",),
        "color": ("black", "red"),
    }


def test_options_of_one_name_overwrite_each_other():
    options = {"Color": [{"value": "Black"}], "Size": [{"value": "S"}], "COLOR": [{"value": "Red"}]}
    assert list(parse(customization_options=options).options.items()) == [
        ("color", ("red",)),
        ("size", ("s",)),
    ]


@pytest.mark.parametrize("none", ["", None, {}])
def test_a_product_may_have_no_options(none):
    assert parse(customization_options=none).options == {}


@pytest.mark.parametrize(
    ("given", "bullets"), [("one text", ("one text",)), (["a", "b"], ("a", "b")), ("", ("",)), ([], ())]
)
def test_a_small_description_may_be_one_text(given, bullets):
    assert parse(small_description=given).bullets == bullets


def test_a_query_is_stripped_and_lower_case():
    assert parse(query=" Desk Lamps ").query == "desk lamps"


def test_a_product_may_have_no_picture():
    assert parse(images=[]).image == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", None),
        ("name", None),
        ("full_description", 3),
        ("small_description", [None]),
        ("customization_options", {"Color": ["black"]}),
    ],
)
def test_a_malformed_field_is_named_with_its_value(field, value):
    with pytest.raises(ValueError, match=rf"product B000000001: {field} is .*expected"):
        parse(**{field: value})


def test_a_row_that_is_no_object_is_shown():
    with pytest.raises(ValueError, match="a row of the products is 'oops'"):
        list(kept_rows(["oops"]))


def test_the_search_engine_indexes_title_description_first_bullet_and_options():
    assert parse().index_text() == (
        "oak desk lamp warm light for long evenings. solid oak color: black, white"
    )


def test_a_range_takes_one_draw_and_a_single_price_none():
    products = [parse(pricing="$1"), parse(asin="B000000002", pricing="$2$3")]
    rng = random.Random(42)
    assert draw_prices(products, rng) == {"B000000001": 1.0, "B000000002": 2 + random.Random(42).random()}
