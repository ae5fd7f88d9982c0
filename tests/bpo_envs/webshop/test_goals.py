"""Goals: all of the recorded ones in their order, and the rules that make them."""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest

from bpo_envs.webshop.catalog import load_catalog
from bpo_envs.webshop.goals import human_goals, synthetic_goals
from bpo_envs.webshop.products import parse_product
from webshop_data import human_instruction, row
from webshop_goldens import FIXTURES, as_json, read_gz, read_lines

UNLIMITED = 1_000_000


def recorded_fields(goals):
    """Goals as the original has them: without our noun lists."""
    return [{k: v for k, v in as_json(asdict(goal)).items() if k != "nouns"} for goal in goals]


def product(asin="B000000001", **fields):
    return parse_product(row(asin, **fields), ["solid oak"], lambda asin, title: title.lower().split())


def synthetic(*products, price=35.0, seed=0, **detail):
    instruction = {"instruction": "Find me lamps", "instruction_attributes": ["solid oak"], **detail}
    prices = {p.asin: price for p in products}
    return synthetic_goals(products, {p.asin: instruction for p in products}, prices, random.Random(seed))


def human(*rows, price=35.0):
    asin = "B000000001"
    return human_goals([product()], {asin: list(rows)}, {asin: price}, random.Random(0))


@pytest.mark.parametrize(("kind", "count"), [("synthetic", 5296), ("human", 1698)])
def test_shipped_goals_are_the_recorded_ones_in_order(kind, count):
    goals = load_catalog(goals=kind).goals
    assert recorded_fields(goals) == read_lines(FIXTURES / f"goals_{kind}.jsonl.gz")
    assert len(goals) == count


def test_shipped_prices_are_the_recorded_ones():
    prices = load_catalog().prices
    assert dict(prices) == read_gz(FIXTURES / "product_prices.json.gz")
    assert len(prices) == 3000


def test_real_synthetic_goals_are_the_recorded_ones_in_order(shared):
    data = shared / "data" / "webshop" / "real1000"
    goals = recorded_fields(load_catalog(data).goals)
    recorded = read_lines(data / "golden" / "goals_synthetic_seed42.jsonl.gz")
    assert len(goals) == len(recorded) == 6910
    assert [{k: g[k] for k in r} for g, r in zip(goals, recorded)] == recorded


def test_real_human_goals_and_prices_are_the_recorded_ones(shared):
    data = shared / "data" / "webshop" / "real1000"
    catalog = load_catalog(data, "human")
    recorded = read_gz(data / "golden" / "goals_human_seed42.json.gz")
    goals = recorded_fields(catalog.goals)
    assert len(goals) == len(recorded) == 13
    assert [{k: g[k] for k in r} for g, r in zip(goals, recorded)] == recorded
    assert dict(catalog.prices) == read_gz(data / "golden" / "product_prices_seed42.json.gz")


def test_the_order_depends_on_no_seed():
    orders = [[goal.asin for goal in load_catalog(catalog_seed=seed).goals] for seed in (1, 42)]
    assert orders[0] == orders[1]


def test_a_synthetic_goal_is_made_for_every_choice_of_options():
    options = {"Size": [{"value": "S"}, {"value": "L"}], "Color": [{"value": "Black"}, {"value": "Red"}]}
    goals = synthetic(product(customization_options=options))
    assert {tuple(goal.goal_options.items()) for goal in goals} == {
        (("color", color), ("size", size)) for color in ("black", "red") for size in ("s", "l")
    }


def test_a_synthetic_instruction_names_options_sorted_and_then_the_price():
    options = {"Size": [{"value": "S"}], "Color": [{"value": "Red"}]}
    (goal,) = synthetic(product(customization_options=options))
    limit = f"{goal.price_upper:.2f}"
    assert goal.instruction_text == (
        f"Find me lamps with color: red, and size: s, and price lower than {limit} dollars"
    )


def test_an_option_without_values_leaves_no_synthetic_goal():
    assert synthetic(product(customization_options={"Color": []})) == ()


def test_products_without_instruction_have_no_synthetic_goal():
    assert synthetic_goals([product()], {}, {"B000000001": 1.0}, random.Random(0)) == ()
    assert synthetic(product(), instruction=None) == ()


def test_the_weight_is_the_mean_rarity_of_the_attributes():
    plain, other = product(customization_options=""), product("B000000002", customization_options="")
    instructions = {
        plain.asin: {"instruction": "a", "instruction_attributes": ["oak", "usb"]},
        other.asin: {"instruction": "b", "instruction_attributes": ["oak"]},
    }
    prices = dict.fromkeys(instructions, 5.0)
    goals = synthetic_goals([plain, other], instructions, prices, random.Random(0))
    assert {goal.asin: goal.weight for goal in goals} == {plain.asin: (1 / 2 + 1 / 1) / 2, other.asin: 1 / 2}


def test_the_limit_is_one_of_the_next_four_tens_but_the_first():
    limits = {synthetic(product(), seed=seed)[0].price_upper for seed in range(60)}
    assert limits == {50.0, 60.0, 70.0}  # at 35 dollars the steps are 40, 50, 60, 70


@pytest.mark.parametrize(
    ("price", "limits"), [(970.0, {990.0}), (980.0, {UNLIMITED}), (985.0, {UNLIMITED}), (5000.0, {UNLIMITED})]
)
def test_dear_products_have_no_limit(price, limits):
    goals = synthetic(product(), price=price)
    assert {goal.price_upper for goal in goals} == limits
    assert ("price lower" in goals[0].instruction_text) == (limits != {UNLIMITED})


def test_a_human_instruction_loses_its_full_stops_and_gains_the_limit():
    (goal,) = human(human_instruction("B000000001"), price=2000.0)
    assert (goal.instruction_text, goal.goal_options, goal.weight) == ("i want a lamp of oak", ("black",), 1)


def test_a_human_instruction_without_attributes_takes_no_draw():
    empty = human_instruction("B000000001", instruction_attributes=[])
    full = human_instruction("B000000001")
    assert human(empty, full) == human(full)


@pytest.mark.parametrize(
    ("field", "value"),
    [("instruction", 3), ("instruction_attributes", "oak"), ("instruction_options", [1])],
)
def test_a_malformed_human_instruction_is_named(field, value):
    with pytest.raises(ValueError, match=f"instruction for B000000001 has {field}="):
        human(human_instruction("B000000001", **{field: value}))


def test_a_synthetic_instruction_without_attributes_is_an_error():
    with pytest.raises(ValueError, match="B000000001 has an instruction but no instruction_attributes"):
        synthetic(product(), instruction_attributes=[])


def test_goals_of_other_content_have_other_digests():
    one, other = synthetic(product())
    assert one.digest() != other.digest()
    assert one.digest() == synthetic(product())[0].digest()
