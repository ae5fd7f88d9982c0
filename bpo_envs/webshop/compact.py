"""A short view of the shop, for small policies: a whole episode fits in some 200 tokens.

The observation shows only what is new, and actions are short free text. It hides descriptions, features and
identifiers, so scores under it are not comparable with those of the full pages.

    task: i need a wooden desk lamp, in black, under $40
    > search wooden desk lamp black
    results:
    1 oak desk lamp with usb port $35
    ...
    > open 1
    item:
    color: black; white
    > pick black
    ok
    > buy
"""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from bpo_envs.text import Text
from bpo_envs.webshop.env import WebShopEnv
from bpo_envs.webshop.queries import searches
from bpo_envs.webshop.session import ITEM, RESULTS, SUB, clickables, parse_action

SHOWN = 6
"""Products listed of a page of ten."""

TITLE_WORDS = 8
"""Words shown of a title."""

_PRICE_LIMIT = re.compile(r",? and price lower than ([\d.]+) dollars")
_DOLLARS = re.compile(r"\$([\d,]+\.\d+)")
_BUTTONS = {"buy": "buy now", "back": "< prev", "next": "next >"}


class CompactView(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Shows `WebShopEnv` in short.

    Actions: ``search WORDS``, ``open N`` (the N-th product listed), ``pick VALUE`` (of an option), ``back``,
    ``next``, ``buy``. Anything else answers ``invalid`` and counts as a step. The wrapper has no state of
    its own: what can be opened is read off the shop's page.
    """

    def __init__(self, env: gym.Env[str, str]) -> None:
        if not isinstance(env.unwrapped, WebShopEnv):
            raise TypeError(f"CompactView shows bpo/WebShop-v0; given: {env.unwrapped!r}")
        RecordConstructorArgs.__init__(self)  # so that Gymnasium can make it again from its spec
        gym.Wrapper.__init__(self, env)
        self.observation_space = Text(2**13)
        self.action_space = Text(2**12)

    @property
    def shop(self) -> WebShopEnv:
        """The environment underneath."""
        return self.env.unwrapped  # type: ignore[return-value]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        _, info = self.env.reset(seed=seed, options=options)
        return self._task(), self._compact(info)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        before = self.shop.session.kind
        raw = self._translate(action) if isinstance(action, str) else action  # the shop refuses the latter
        valid = isinstance(raw, str) and self._possible(raw)
        _, reward, terminated, truncated, info = self.env.step("" if raw is None else raw)
        text = self._show(action, before) if valid else "invalid\n"
        return text, reward, terminated, truncated, self._compact(info)

    def _translate(self, action: str) -> str | None:
        """The shop's action for a short one; None if it means nothing here."""
        verb, _, argument = action.strip().partition(" ")
        argument = argument.strip()
        kind = self.shop.session.kind
        if verb == "search" and argument:
            return f"search[{argument}]"
        if verb == "open" and kind == RESULTS and argument.isdecimal() and len(argument) < 4:
            listed = self._listed()
            number = int(argument)
            return f"click[{listed[number - 1].lower()}]" if 1 <= number <= len(listed) else None
        if verb == "pick" and kind == ITEM:
            return f"click[{argument}]" if self._is_option(argument) else None
        return f"click[{_BUTTONS[verb]}]" if verb in _BUTTONS and not argument else None

    def _possible(self, raw: str) -> bool:
        """Whether the shop understands it on this page."""
        name, argument = parse_action(raw) or ("", "")
        shop = self.shop
        choices = clickables(shop.catalog, shop.session, shop.rules)
        return name == "search" or (name == "click" and argument in choices)

    def _is_option(self, value: str) -> bool:
        product = self.shop.product
        return product is not None and any(value in values for values in product.options.values())

    def _listed(self) -> tuple[str, ...]:
        return self.shop.results()[:SHOWN]

    def _task(self) -> str:
        text = self.shop.goal.instruction_text.lower()
        return "task: " + _PRICE_LIMIT.sub(lambda m: f", under ${float(m[1]):.0f}", text) + "\n"

    def _show(self, action: str, before: str) -> str:
        """What the page shows, less what the conversation holds already."""
        kind = self.shop.session.kind
        if kind == RESULTS:
            if before == ITEM and action.strip() == "back":
                return "results again\n"
            lines = [f"{n} {self._line(asin)}\n" for n, asin in enumerate(self._listed(), 1)]
            return "results:\n" + "".join(lines) if lines else "no results\n"
        if kind == ITEM:
            product = self.shop.product
            assert product is not None  # an item page has a product
            if before == ITEM:
                return "ok\n"
            lines = [f"{name}: {'; '.join(values)}\n" for name, values in product.options.items()]
            return "item:\n" + ("".join(lines) or "no options\n")
        return "bought\n" if self.shop.session.done else "page\n"

    def _line(self, asin: str) -> str:
        product = self.shop.catalog.by_asin[asin]
        price = product.price_text.split(" to ")[0]
        title = " ".join(product.title.lower().split()[:TITLE_WORDS])
        text = f"{title} {price}"
        return _DOLLARS.sub(lambda m: f"${float(m[1].replace(',', '')):.0f}", text)

    def _compact(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "admissible_actions": self._admissible(info)}

    def _admissible(self, info: dict[str, Any]) -> list[str]:
        kind = self.shop.session.kind
        understood = info["admissible_actions"]
        if kind == RESULTS:
            opened = [f"open {n}" for n in range(1, len(self._listed()) + 1)]
            turns = ["next", *(["back"] if "click[< prev]" in understood else [])]
            return [*opened, *turns] if opened else [*_searches(info), *turns]
        if kind == ITEM:
            product = self.shop.product
            groups = product.options.values() if product else ()
            picks = (value for group in groups for value in group if f"click[{value}]" in understood)
            return ["buy", "back", *(f"pick {value}" for value in picks)]
        if kind == SUB:  # an option that is called like one of the item's other pages leads there
            return ["back"]
        return [] if self.shop.session.done else _searches(info)


def _searches(info: dict[str, Any]) -> list[str]:
    return [f"search {query[len('search[') : -1]}" for query in searches(info["instruction"])]
