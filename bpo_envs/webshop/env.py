"""``bpo/WebShop-v0``: shopping by text, as in WebShop (Yao et al. 2022), to be gone back in.

The environment ties the parts together: it picks a goal from the split's panel, hands actions to the state
machine, writes the page, and scores the purchase. Its whole state is one `Session`.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np

from bpo_envs.tasks import TaskPanel, choose_index
from bpo_envs.text import Text
from bpo_envs.webshop import markup, pages, queries, session, state
from bpo_envs.webshop.catalog import Catalog, load_catalog
from bpo_envs.webshop.goals import SPLITS, Goal
from bpo_envs.webshop.products import Product
from bpo_envs.webshop.reward import purchase_reward
from bpo_envs.webshop.session import Rules, Session

OBSERVATION_MODES = ("text", "text_rich", "html", "url")
REWARD_MODES = ("score", "success")

_LONGEST_PAGE = 2**16  # characters; the longest page of the real 1,000 products has 20,000
_LONGEST_ACTION = 2**12


class WebShopEnv(gym.Env[str, str]):
    """One shopper with one task: find what the instruction asks for, choose its options, buy it.

    Actions are ``search[words]`` and ``click[text of a button, product or option]``. An action that means
    nothing on the page changes nothing, as in the original. The episode ends with the purchase.

    Args:
        data: folder with upstream's file names (or the products' file in it); None: the catalogue that ships.
        data_dir: another name of ``data``.
        goals: ``"synthetic"`` or ``"human"``.
        split: ``"train"``, ``"dev"``, ``"test"`` or ``"all"``: goals 1500 and up, 500 to 1499, 0 to 499, all.
        observation_mode: ``"text"``, ``"text_rich"``, ``"html"`` or ``"url"``.
        reward_mode: ``"score"``: the paper's reward in [0, 1]; ``"success"``: 1 for a score of 1, else 0.
        catalog_seed: seed of ranged prices and of price limits.
        nouns: None for the prepared nouns of titles, ``"heuristic"`` to do without.
        render_mode: None or ``"ansi"``.
        show_attrs: upstream's switch: item pages have an "Attributes" page.
        special_words: upstream's switch: ``<c>``, ``<q>`` and ``<r>`` as first words of a search.

    Raises:
        FileNotFoundError, ValueError: as `load_catalog`, or an unknown setting.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": ["ansi"],
        "render_fps": 1,
    }
    set_state_returns_observation = True  # snapshots need not carry pages

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        goals: str = "synthetic",
        split: str = "train",
        observation_mode: str = "text",
        reward_mode: str = "score",
        catalog_seed: int = 42,
        nouns: str | None = None,
        render_mode: str | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        show_attrs: bool = False,
        special_words: bool = False,
    ) -> None:
        if data is not None and data_dir is not None:
            raise ValueError(f"data={data!r} and data_dir={data_dir!r} are two names of one thing; give one")
        _check_choice("observation_mode", observation_mode, OBSERVATION_MODES)
        _check_choice("reward_mode", reward_mode, REWARD_MODES)
        _check_choice("render_mode", render_mode, (None, "ansi"))
        self.catalog: Catalog = load_catalog(data_dir if data is None else data, goals, catalog_seed, nouns)
        self.catalog.panel(split)  # an unknown or empty split fails here, not at the first reset
        self.split = split
        self.observation_mode = observation_mode
        self.reward_mode = reward_mode
        self.render_mode = render_mode
        self.rules = Rules(bool(show_attrs), bool(special_words))
        self.step_limit: int | None = None  # set from outside: the limit is the wrapper TimeLimit's
        self.observation_space = Text(_LONGEST_PAGE)
        self.action_space = Text(_LONGEST_ACTION)
        self._session: Session | None = None
        self._score = 0.0
        self._reward_parts: dict[str, Any] = {}

    @property
    def task_panel(self) -> TaskPanel:
        """The tasks of the split."""
        return self.catalog.panel(self.split)

    @property
    def session(self) -> Session:
        """Where the shopper stands.

        Raises:
            RuntimeError: before the first reset.
        """
        if self._session is None:
            raise RuntimeError("the environment has no episode yet; call reset() first")
        return self._session

    @property
    def goal(self) -> Goal:
        """The episode's goal."""
        return session.goal_of(self.catalog, self.session)

    @property
    def product(self) -> Product | None:
        """The product looked at, if any."""
        return session.product_of(self.catalog, self.session)

    def results(self) -> tuple[str, ...]:
        """The products listed on the current page of results, by identifier."""
        return session.results(self.catalog, self.session, self.rules)

    def page(self, mode: str | None = None) -> str:
        """Write the current page.

        Args:
            mode: ``"text"``, ``"text_rich"``, ``"html"`` or ``"url"``; None: the environment's own.

        Raises:
            ValueError: an unknown mode.
            RuntimeError: before the first reset.
        """
        mode = self.observation_mode if mode is None else mode
        _check_choice("page mode", mode, OBSERVATION_MODES)
        if mode == "url":
            return session.url(self.session)
        page = pages.segments(self.catalog, self.session, self.rules, self._score)
        if mode == "text":
            return pages.text(page)
        if mode == "text_rich":
            return pages.text_rich(page, self.session)
        return markup.html(page, self.session, "" if self.product is None else self.product.image)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: seeds the choice of the task; nothing else is random.
            options: ``{"index": i}``: a position in the split's panel; ``{"task_id": name}``;
                ``{"goal_idx": i}``: a position in the whole order of goals, whatever the split.

        Raises:
            ValueError: options that name no task.
        """
        super().reset(seed=seed)
        self._begin(Session(self._choose_goal(options or {})))
        return self.page(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out an action.

        Raises:
            TypeError: the action is no string.
            RuntimeError: before the first reset, or after the end of the episode.
        """
        if not isinstance(action, str):
            raise TypeError(
                f"an action is a string such as 'search[red shoes]' or 'click[buy now]'; given: {action!r} "
                f"({type(action).__name__})"
            )
        shopper = self.session
        if shopper.done:
            raise RuntimeError(
                "the episode is over: the product was bought; call reset(), or restore a snapshot"
            )
        session.act(self.catalog, shopper, action, self.rules)
        shopper.steps += 1
        self._grade()
        reward = float(self._score == 1.0) if self.reward_mode == "success" else self._score
        return self.page(), reward, shopper.done, False, self._info()

    def render(self) -> str | None:
        """Return the current page in mode ``text_rich`` if made with ``render_mode="ansi"``."""
        return self.page("text_rich") if self.render_mode == "ansi" else None

    def available_actions(self) -> dict[str, Any]:
        """Return what the page offers, as the original's ``get_available_actions``."""
        return {
            "has_search_bar": self.session.kind == session.SEARCH,
            "clickables": list(session.clickables(self.catalog, self.session, self.rules)),
        }

    def get_state(self) -> dict[str, Any]:
        """Return the episode's state as plain data; the generator of `reset` is not part of it."""
        return state.to_data(self.session)

    def set_state(self, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Go to a state that `get_state` returned, in this or any other environment of the same catalogue.

        Returns:
            The observation and info of that moment.

        Raises:
            ValueError: the data are no state of this catalogue; the message names the field.
        """
        self._begin(state.from_data(self.catalog, data))
        return self.page(), self._info()

    def _begin(self, shopper: Session) -> None:
        self._session = shopper
        self._grade()

    def _grade(self) -> None:
        """Score the purchase; before it, nothing has been earned."""
        self._score, self._reward_parts = 0.0, {}
        product = self.product
        if self.session.done and product is not None:
            self._score, self._reward_parts = purchase_reward(
                product, self.goal, self.session.options, self.catalog.prices[product.asin]
            )

    def _choose_goal(self, options: dict[str, Any]) -> int:
        if "goal_idx" not in options:
            position = choose_index(self.task_panel, options, self.np_random, allowed=("goal_idx",))
            return SPLITS[self.split].start + position
        given, total = options["goal_idx"], len(self.catalog.goals)
        is_integer = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
        if len(options) > 1 or not is_integer or not 0 <= given < total:
            raise ValueError(
                f"reset options {options!r} name no goal; give goal_idx alone, an integer from 0 to "
                f"{total - 1}"
            )
        return int(given)

    def _info(self) -> dict[str, Any]:
        shopper, catalog = self.session, self.catalog
        instruction = self.goal.instruction_text
        available = self.available_actions()
        info = {
            "task_id": catalog.task_ids[shopper.goal_idx],
            "task_digest": catalog.task_digests[shopper.goal_idx],
            "instruction": instruction,
            "admissible_actions": (
                queries.searches(instruction)
                if available["has_search_bar"]
                else queries.clicks(available["clickables"])
            ),
            "won": self._score == 1.0,
            "score": self._score,
            "steps_left": None if self.step_limit is None else self.step_limit - shopper.steps,
            "available_actions": available,
            "goal_idx": shopper.goal_idx,
            "catalog": catalog.name,
            "catalog_fingerprint": catalog.fingerprint,
        }
        if shopper.done:
            info["reward_parts"] = dict(self._reward_parts)
        return info


def _check_choice(name: str, given: object, choices: tuple[object, ...]) -> None:
    if given not in choices:
        raise ValueError(f"unknown {name}={given!r}; expected one of {', '.join(map(repr, choices))}")
