"""The shop's state machine: what an action does to one shopper's session.

A `Session` is small and plain; everything it refers to stands in the catalogue, and pages are functions of
both. That is what makes a snapshot cost microseconds: it holds the session and nothing else.

The rules are those of the original, its oddities included. Two need telling. An action is read by a greedy
regular expression from its start, so that ``search[shoes] now`` is a search and ``I will search[shoes]`` is
nothing. And ``< prev`` asks for the name of the current page by looking for it *in the URL*, where the query
stands too: after ``search[item_page lamp]`` it leads elsewhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from bpo_envs.webshop.catalog import Catalog
from bpo_envs.webshop.goals import Goal
from bpo_envs.webshop.products import Product

SEARCH, RESULTS, ITEM, SUB, DONE = KINDS = ("search", "results", "item", "sub", "done")
TOPICS = ("Description", "Features", "Reviews", "Attributes")
PAGE_SIZE = 10

_BASE_URL = "http://127.0.0.1:3000"
_TOPIC_OF = {topic.lower(): topic for topic in TOPICS}
_PAGE_NAMES = {"search_results": RESULTS, "item_page": ITEM, "item_sub_page": SUB, "done": DONE}


class Rules(NamedTuple):
    """Upstream's switches.

    Attributes:
        show_attrs: item pages have an "Attributes" page, which names what the reward looks at.
        special_words: searches may begin with ``<c> category``, ``<q> query`` or ``<r>`` (random products).
    """

    show_attrs: bool = False
    special_words: bool = False


PLAIN = Rules()


@dataclass(slots=True)
class Session:
    """Where one shopper stands.

    Attributes:
        goal_idx: position of the goal in the catalogue's order.
        kind: the page: ``"search"``, ``"results"``, ``"item"``, ``"sub"`` or ``"done"``.
        topic: which sub page, one of `TOPICS`; None on any other page.
        keywords: the words searched for, split at single spaces; None before the first search.
        page: the number of the page of results.
        asin: the product looked at.
        asins: the products looked at since the search page.
        options: chosen option values by name.
        actions: how often what was done since the search page.
        steps: actions since the reset, invalid ones included.
    """

    goal_idx: int
    kind: str = SEARCH
    topic: str | None = None
    keywords: tuple[str, ...] | None = None
    page: int | None = None
    asin: str | None = None
    asins: set[str] = field(default_factory=set)
    options: dict[str, str] = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)
    steps: int = 0

    @property
    def done(self) -> bool:
        """Whether something has been bought."""
        return self.kind == DONE

    def count(self, name: str) -> None:
        """Note one more action of a kind."""
        self.actions[name] = self.actions.get(name, 0) + 1


def goal_of(catalog: Catalog, session: Session) -> Goal:
    """The session's goal."""
    return catalog.goals[session.goal_idx]


def product_of(catalog: Catalog, session: Session) -> Product | None:
    """The product looked at, if any."""
    return None if session.asin is None else catalog.by_asin[session.asin]


def hits(catalog: Catalog, session: Session, rules: Rules = PLAIN) -> tuple[str, ...]:
    """All products found by the session's search, best first; none before a search."""
    if session.keywords is None:
        return ()
    if rules.special_words and session.keywords[0] in _SPECIAL:
        return _SPECIAL[session.keywords[0]](catalog, session)
    return catalog.search(" ".join(session.keywords))


def results(catalog: Catalog, session: Session, rules: Rules = PLAIN) -> tuple[str, ...]:
    """The products listed on the session's page of results (at most ten, none past the end)."""
    if session.page is None:
        return ()
    start = (session.page - 1) * PAGE_SIZE
    return hits(catalog, session, rules)[start : start + PAGE_SIZE]


def clickables(catalog: Catalog, session: Session, rules: Rules = PLAIN) -> dict[str, str | None]:
    """What can be clicked, in the order of the page.

    Returns:
        Lower-case text to what it stands for: a product's asin, an option's name, or None for a button. An
        option value that equals a button takes the button's place, as in the original.
    """
    if session.kind == RESULTS:
        previous = ("< prev",) if session.page is not None and session.page > 1 else ()
        found: dict[str, str | None] = dict.fromkeys(("back to search", *previous, "next >"))
        found.update((asin.lower(), asin) for asin in results(catalog, session, rules))
        return found
    if session.kind == ITEM:
        topics = (topic.lower() for topic in shown_topics(rules))
        found = dict.fromkeys(("back to search", "< prev", *topics, "buy now"))
        for name, values in _product(catalog, session).options.items():
            found.update((value, name) for value in values)
        return found
    if session.kind == SUB:
        return dict.fromkeys(("back to search", "< prev"))
    return {"search": None} if session.kind == SEARCH else {}


def shown_topics(rules: Rules) -> tuple[str, ...]:
    """The sub pages that an item page offers."""
    return TOPICS if rules.show_attrs else TOPICS[:3]


def parse_action(action: str) -> tuple[str, str] | None:
    r"""Split an action into name and lower-case argument; None if it has not the form ``name[argument]``.

    That is upstream's ``re.match(r"(.+)\[(.+)\]", action)``, in linear time: the expression itself would
    take the square of a long row of brackets, which a model may well write.
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, max(end - 1, 0))
    return (line[:start], line[start + 1 : end].lower()) if start > 0 else None


def act(catalog: Catalog, session: Session, action: str, rules: Rules = PLAIN) -> bool:
    """Carry out one action of the agent.

    Args:
        catalog: the shop.
        session: changed in place.
        action: ``search[words]`` or ``click[something on the page]``, as the agent wrote it.
        rules: upstream's switches.

    Returns:
        Whether the action was valid. One that is not leaves the session as it was.
    """
    parsed = parse_action(action)
    if parsed is None:
        return False
    name, argument = parsed
    if name == "search":
        return _search(session, tuple(argument.split(" ")), 1, rules)
    if name != "click" or argument == "search":
        return False
    choices = clickables(catalog, session, rules)
    if argument not in choices:
        return False
    _click(session, argument, choices[argument], rules)
    return True


def url(session: Session) -> str:
    """The address of the session's page in the original's web server."""
    words = "+".join(session.keywords or ())
    where = f"{session.goal_idx}/{session.asin}/{words}/{session.page}"
    if session.kind == RESULTS:
        return f"{_BASE_URL}/search_results/{session.goal_idx}/{words}/{session.page}"
    if session.kind == ITEM:
        return f"{_BASE_URL}/item_page/{where}/{json.dumps(session.options)}"
    if session.kind == SUB:
        return f"{_BASE_URL}/item_sub_page/{where}/{session.topic}/{session.options}"
    if session.kind == DONE:
        return f"{_BASE_URL}/done/{session.goal_idx}/{session.asin}/{session.options}"
    return f"{_BASE_URL}/{session.goal_idx}"


def _click(session: Session, argument: str, target: str | None, rules: Rules) -> None:
    """Go where a click leads: by the text alone first, whatever the element that bears it."""
    page_name = _page_named_in(url(session))
    if argument == "buy now":
        session.kind = DONE
        session.count("purchase")
    elif argument == "back to search":
        _clear(session)
    elif argument == "next >" and page_name == RESULTS:
        _search(session, _keywords(session), _page(session) + 1, rules)
    elif argument == "< prev" and page_name == RESULTS:
        _search(session, _keywords(session), _page(session) - 1, rules)
    elif argument == "< prev" and page_name == ITEM:
        _search(session, _keywords(session), _page(session), rules)
    elif argument == "< prev" and page_name == SUB:
        _open_item(session)
    elif argument in _TOPIC_OF:
        session.kind, session.topic = SUB, _TOPIC_OF[argument]
        session.count(_TOPIC_OF[argument])
    elif session.kind == RESULTS:
        assert target is not None  # a link
        session.asin = target
        session.asins.add(target)
        session.count("asin")
        _open_item(session)
    elif target is not None:
        session.options[target] = argument
        session.count("options")
        _open_item(session)


def _search(session: Session, keywords: tuple[str, ...], page: int, rules: Rules) -> bool:
    if rules.special_words and (keywords[0] == "<a>" or keywords == ("<c>",)):
        return False  # the original crashes here
    session.kind, session.topic = RESULTS, None
    session.keywords, session.page, session.asin = keywords, page, None
    session.options.clear()
    session.count("search")
    return True


def _open_item(session: Session) -> None:
    session.kind, session.topic = ITEM, None


def _clear(session: Session) -> None:
    session.kind, session.topic = SEARCH, None
    session.keywords = session.page = session.asin = None
    session.asins.clear()
    session.options.clear()
    session.actions.clear()


def _page_named_in(address: str) -> str | None:
    return next((kind for name, kind in _PAGE_NAMES.items() if name in address), None)


def _keywords(session: Session) -> tuple[str, ...]:
    assert session.keywords is not None  # pages that lead here were reached by a search
    return session.keywords


def _page(session: Session) -> int:
    assert session.page is not None
    return session.page


def _product(catalog: Catalog, session: Session) -> Product:
    assert session.asin is not None  # item and sub pages have a product
    return catalog.by_asin[session.asin]


def _of_category(catalog: Catalog, session: Session) -> tuple[str, ...]:
    wanted = _keywords(session)[1:2]
    return tuple(product.asin for product in catalog.products if product.category in wanted)


def _of_query(catalog: Catalog, session: Session) -> tuple[str, ...]:
    wanted = " ".join(_keywords(session)[1:])
    return tuple(product.asin for product in catalog.products if product.query == wanted)


def _at_random(catalog: Catalog, session: Session) -> tuple[str, ...]:
    """Fifty products that depend on the session alone (the original asks the global generator)."""
    rng = random.Random(f"{catalog.fingerprint} {session.goal_idx} {session.actions.get('search')}")
    return tuple(product.asin for product in rng.sample(catalog.products, min(50, len(catalog.products))))


_SPECIAL: dict[str, Callable[[Catalog, Session], tuple[str, ...]]] = {
    "<c>": _of_category,
    "<q>": _of_query,
    "<r>": _at_random,
}
