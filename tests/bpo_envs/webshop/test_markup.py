"""Pages as HTML: read back with an HTML parser, they hold what the text modes show."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from bpo_envs.webshop.env import WebShopEnv
from webshop_goldens import FIXTURES, replay

_UNSEEN = {"html", "head", "title", "meta", "style", "script", "[document]"}


def texts_of(markup):
    """The visible strings of a page, as the original picks them."""
    strings = BeautifulSoup(markup, "html.parser").find_all(string=True)
    return [string for string in strings if string.parent.name not in _UNSEEN and string != "\n"]


def text_rich_of(markup, address, asins):
    """Mode ``text_rich``, written from the parsed page."""
    page = ""
    for string in texts_of(markup):
        element = string.parent
        if element.name == "button":
            page += f"[button] {string} [button_]\n"
        elif element.name == "label" and f'"{string}"' in address:
            page = f"You have clicked {string}.\n{page}  [clicked button] {string} [clicked button_]\n"
        elif element.name == "label":
            page += f"  [button] {string} [button_]\n"
        elif element.get("class") == ["product-link"]:
            clicked = "clicked " if string in asins else ""
            page += f"\n[{clicked}button] {string} [{clicked}button_]\n"
        else:
            page += f"{string}\n"
    return page


@pytest.fixture(scope="module")
def env():
    return WebShopEnv(split="all", observation_mode="html")


def go(env, *actions, goal_idx=0):
    """The parsed page after some actions."""
    env.reset(options={"goal_idx": goal_idx})
    for action in actions:
        env.step(action)
    return BeautifulSoup(env.page("html"), "html.parser")


# One file for each kind of page and oddity; the text modes of all files are compared in test_pages_golden.
@pytest.mark.parametrize(
    "name", ["episodes_quirks", "episodes_show_attrs", "episodes_edge", "episodes_human"]
)
def test_the_markup_holds_the_recorded_texts(name, monkeypatch):
    monkeypatch.setattr("webshop_goldens.observe", lambda env: {"env": env, "html": env.page("html")})
    for where, recorded, ours in replay(FIXTURES / f"{name}.jsonl.gz"):
        obs, shopper = recorded["obs"], ours["env"].session
        assert " [SEP] ".join(text.strip() for text in texts_of(ours["html"])) == obs["text"], where
        assert text_rich_of(ours["html"], obs["url"], shopper.asins) == obs["text_rich"], where


def test_the_observation_is_the_markup(env):
    assert env.reset(seed=0)[0] == env.page("html")


def test_the_search_page_has_instruction_and_search_bar(env):
    page = go(env)
    assert page.select_one("#instruction-text h4").text == f"Instruction: {env.goal.instruction_text}"
    assert page.select_one("#search_input") is not None
    assert [button.text for button in page.select(".btn")] == ["Search"]


def test_the_results_page_links_titles_and_prices(env):
    page = go(env, "search[lamp]")
    products = [env.catalog.by_asin[asin] for asin in env.results()]
    assert [link.text for link in page.select("a.product-link")] == [p.asin for p in products]
    assert [title.text for title in page.select(".product-title")] == [p.title for p in products]
    assert [price.text for price in page.select(".product-price")] == [p.price_text for p in products]


def test_the_item_page_has_its_picture_and_its_choices(env):
    goal = next(i for i, goal in enumerate(env.catalog.goals) if len(goal.goal_options) == 2)
    wanted = env.catalog.goals[goal]
    first = next(iter(wanted.goal_options.values()))
    search = f"search[{wanted.name}]"
    page = go(env, search, f"click[{wanted.asin}]", f"click[{first}]", goal_idx=goal)
    assert page.select_one("#product-image")["src"] == env.product.image
    radios = page.select("input[type=radio]")
    offered = [(name, value) for name, values in env.product.options.items() for value in values]
    assert [(radio["name"], radio["value"]) for radio in radios] == offered
    assert [radio["value"] for radio in radios if radio.has_attr("checked")] == [first]


def test_sub_pages_mark_their_texts(env):
    asin = next(p.asin for p in env.catalog.products if len(p.bullets) > 2)
    page = go(env, f"search[{env.catalog.by_asin[asin].title}]", f"click[{asin}]", "click[features]")
    assert [p.text.strip() for p in page.select("p.product-info")] == [
        bullet.strip() for bullet in env.product.bullets
    ]


def test_the_last_page_states_purchase_and_reward(env):
    go(env, "search[lamp]")
    first = env.results()[0]
    env.step(f"click[{first}]")
    observation, reward, *_ = env.step("click[buy now]")
    page = BeautifulSoup(observation, "html.parser")
    assert page.select_one("#asin pre").text == first
    assert page.select_one("#reward pre").text == repr(reward)
