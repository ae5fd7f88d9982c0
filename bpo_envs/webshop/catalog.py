"""The catalogue: products, prices, goals and search index, read once and never changed.

One catalogue serves every environment of a process. It is known by a *fingerprint* (sha256 over the files'
content and everything else that decides what a task is), and it pickles by reference: what travels to another
process is where the catalogue comes from, and the fingerprint that it must have there.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bpo_envs.tasks import TaskPanel, task_digest
from bpo_envs.webshop import nouns as heuristic
from bpo_envs.webshop.data import DataFiles, locate, read_mapping, read_rows
from bpo_envs.webshop.goals import SPLITS, Goal, human_goals, synthetic_goals
from bpo_envs.webshop.products import Product, draw_prices, kept_rows, parse_product
from bpo_envs.webshop.search import FORMAT, CachedIndex, Index

__all__ = ["GOAL_KINDS", "Catalog", "Product", "load_catalog"]

GOAL_KINDS = ("synthetic", "human")

_NO_ATTRIBUTES = ("DUMMY_ATTR",)  # upstream's word where items_ins_v2 has no list
_INDEXED_TEXTS = 1  # raise when `Product.index_text` changes
_CACHED_FROM = 10_000  # products: below it an index is built faster than the fuss of a file is worth


@dataclass(frozen=True)
class _Shelf:
    """What catalogues of the same files share, whatever their goals and seed."""

    products: tuple[Product, ...]
    by_asin: Mapping[str, Product]
    index: CachedIndex
    content: dict[str, str]  # part -> sha256


@dataclass(frozen=True, eq=False)
class Catalog:
    """Products, prices, goals and index of one shop. Made by `load_catalog`; compares by identity.

    Attributes:
        name: of the data.
        fingerprint: sha256 over the files' content, the kind of goals, the seed and the nouns.
        goals_kind: ``"synthetic"`` or ``"human"``.
        catalog_seed: seed of prices and price limits.
        products: in the order of the file.
        by_asin: the same by identifier.
        prices: dollars by identifier.
        goals: in the one shuffled order that all splits are cut from.
        index: the search index.
    """

    name: str
    fingerprint: str
    goals_kind: str
    catalog_seed: int
    products: tuple[Product, ...]
    by_asin: Mapping[str, Product] = field(repr=False)
    prices: Mapping[str, float] = field(repr=False)
    goals: tuple[Goal, ...]
    index: CachedIndex = field(repr=False)
    _origin: tuple[str | None, str, int, str | None] = field(repr=False)

    def __repr__(self) -> str:
        """Short: a catalogue holds thousands of products."""
        return (
            f"<Catalog {self.name}: {len(self.products)} products, {len(self.goals)} {self.goals_kind} "
            f"goals, {self.fingerprint[:12]}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_same, (*self._origin, self.fingerprint)

    def search(self, query: str) -> tuple[str, ...]:
        """Return the identifiers of the best 50 products for ``query``, best first."""
        return self.index.search(query)

    @cached_property
    def task_ids(self) -> tuple[str, ...]:
        """A name for each goal: its kind and its position in the shuffled order."""
        return tuple(f"{self.goals_kind}-{i}" for i in range(len(self.goals)))

    @cached_property
    def task_digests(self) -> tuple[str, ...]:
        """sha256 of each goal's content."""
        return tuple(goal.digest() for goal in self.goals)

    def panel(self, split: str) -> TaskPanel:
        """Return the tasks of a split.

        Raises:
            ValueError: no such split, or it is empty here.
        """
        if split not in SPLITS:
            raise ValueError(f"unknown split {split!r}; expected one of {', '.join(map(repr, SPLITS))}")
        return _panel(self, split)


@lru_cache(maxsize=64)
def _panel(catalog: Catalog, split: str) -> TaskPanel:
    cut = SPLITS[split]
    if not catalog.goals[cut]:
        raise ValueError(
            f"split {split!r} of {catalog.name} is empty: the catalogue has {len(catalog.goals)} "
            f"{catalog.goals_kind} goals and the split starts at {cut.start}; choose split='all' or more data"
        )
    return TaskPanel("webshop", split, catalog.task_ids[cut], catalog.task_digests[cut])


def load_catalog(
    data: str | os.PathLike[str] | None = None,
    goals: str = "synthetic",
    catalog_seed: int = 42,
    nouns: str | None = None,
) -> Catalog:
    """Return a catalogue; the same object for the same files and settings.

    Args:
        data: folder with upstream's file names, or the products' file in it; None: the catalogue that ships.
        goals: ``"synthetic"`` or ``"human"``.
        catalog_seed: seed of the prices of ranged products and of the goals' price limits (the original draws
            them anew in every process).
        nouns: None for the prepared ``title_nouns.json``, ``"heuristic"`` to do without.

    Raises:
        FileNotFoundError: a file is missing; the message says which, and how to get it.
        ValueError: an unknown setting, or a malformed row.
    """
    if goals not in GOAL_KINDS:
        raise ValueError(f"unknown goals={goals!r}; expected one of {', '.join(map(repr, GOAL_KINDS))}")
    if nouns not in (None, "heuristic"):
        raise ValueError(
            f"unknown nouns={nouns!r}; expected None (the prepared title_nouns.json) or 'heuristic'"
        )
    if isinstance(catalog_seed, bool) or not isinstance(catalog_seed, int):
        raise ValueError(f"catalog_seed={catalog_seed!r} is no integer; give one, such as the default 42")
    files = locate(data)
    return _catalog(files, files.signature(), goals, catalog_seed, nouns)


def _load_same(
    data: str | None, goals: str, catalog_seed: int, nouns: str | None, fingerprint: str
) -> Catalog:
    catalog = load_catalog(data, goals, catalog_seed, nouns)
    if catalog.fingerprint != fingerprint:
        raise ValueError(
            f"the catalogue {data or 'that ships'} has the fingerprint {catalog.fingerprint} here, but "
            f"{fingerprint} where it was pickled; use the same data files in both processes"
        )
    return catalog


@lru_cache(maxsize=8)
def _catalog(
    files: DataFiles, signature: tuple[Any, ...], goals: str, catalog_seed: int, nouns: str | None
) -> Catalog:
    shelf = _shelf(files, signature, nouns)
    rng = random.Random(catalog_seed)
    prices = draw_prices(shelf.products, rng)  # before the goals: the order of the draws is upstream's
    if goals == "human":
        instructions, content = read_mapping(files.human_instructions)
        goal_list = human_goals(shelf.products, instructions, prices, rng)
    else:
        instructions, content = read_mapping(files.instructions)
        goal_list = synthetic_goals(shelf.products, instructions, prices, rng)
    identity = {**shelf.content, "instructions": content, "goals": goals, "catalog_seed": catalog_seed}
    return Catalog(
        name=files.name,
        fingerprint=task_digest(identity),
        goals_kind=goals,
        catalog_seed=catalog_seed,
        products=shelf.products,
        by_asin=shelf.by_asin,
        prices=MappingProxyType(prices),
        goals=goal_list,
        index=shelf.index,
        _origin=(files.source, goals, catalog_seed, nouns),
    )


@lru_cache(maxsize=4)
def _shelf(files: DataFiles, signature: tuple[Any, ...], nouns: str | None) -> _Shelf:
    details, details_hash = read_mapping(files.instructions)
    nouns_of, nouns_hash = _title_nouns(files, nouns)
    items = hashlib.sha256()
    products = tuple(
        parse_product(row, details.get(row["asin"], {}).get("attributes", _NO_ATTRIBUTES), nouns_of)
        for row in kept_rows(read_rows(files.items, items))
    )
    by_asin = MappingProxyType({product.asin: product for product in products})
    content = {"items": items.hexdigest(), "attributes": details_hash, "nouns": nouns_hash}
    return _Shelf(products, by_asin, CachedIndex(_index(products, items.hexdigest())), content)


def _title_nouns(files: DataFiles, nouns: str | None) -> tuple[Callable[[str, str], Iterable[str]], str]:
    """Return identifier and title to nouns, and what stands for them in the fingerprint."""
    if nouns == "heuristic":
        return lambda asin, title: heuristic.heuristic_nouns(title), heuristic.NAME
    if files.title_nouns is None:
        raise FileNotFoundError(
            f"no title_nouns.json in {files.folder}: the reward needs the nouns of the products' titles. "
            f"Make it once with `python -m bpo_envs prepare {files.source}` (needs spaCy: pip install "
            "'bpo-envs[webshop-nlp]'), or ask for nouns='heuristic', whose rewards differ a little"
        )
    prepared, digest = read_mapping(files.title_nouns)

    def look_up(asin: str, title: str) -> list[str]:
        if asin not in prepared:
            raise ValueError(
                f"{files.title_nouns} does not hold product {asin}: it was made for other data. Make it "
                f"again with `python -m bpo_envs prepare --force {files.source}`"
            )
        return prepared[asin]

    return look_up, digest


def _index(products: tuple[Product, ...], items_hash: str) -> Index:
    """Build the search index, or open the one that an earlier process left in the user's cache."""
    folder = index_folder(items_hash) if len(products) >= _CACHED_FROM else None
    if folder is not None and folder.is_dir():
        return Index.load(folder)
    index = Index.build([p.asin for p in products], [p.index_text() for p in products])
    if folder is None:
        return index
    index.save(folder)
    return Index.load(folder)  # as a memory map, whose pages all processes share


def index_folder(items_hash: str) -> Path:
    """Where the index of the products with that sha256 is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "bpo-envs" / f"webshop-index-{FORMAT}.{_INDEXED_TEXTS}-{items_hash[:32]}"
