"""The files of a WebShop data folder: which there are, and their content.

Upstream's file names are kept, so that a folder made for the original works as it is; each file may be plain
or gzipped. ``title_nouns.json`` is the one file of our own: the nouns of every product's title, worked out
once by ``python -m bpo_envs prepare`` so that no language model is needed at run time.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bpo_envs.assets import asset

_ITEM_NAMES = ("items_shuffle", "items_shuffle_1000")
_EXPECTED = (
    "items_shuffle.json with items_ins_v2.json (or items_shuffle_1000.json with items_ins_v2_1000.json), "
    "items_human_ins.json for goals='human', and title_nouns.json, each plain or .gz"
)


@dataclass(frozen=True)
class DataFiles:
    """Where the parts of one catalogue lie.

    Attributes:
        source: the absolute path that was asked for, or None for the catalogue that ships.
        folder: the folder of the files.
        items: the products.
        suffix: ``"_1000"`` for upstream's small set, else empty.
    """

    source: str | None
    folder: Path
    items: Path
    suffix: str

    @property
    def instructions(self) -> Path:
        """Attributes and synthetic instructions of each product."""
        return self._part(f"items_ins_v2{self.suffix}")

    @property
    def human_instructions(self) -> Path:
        """Instructions written by people (or in their manner)."""
        return self._part("items_human_ins")

    @property
    def title_nouns(self) -> Path | None:
        """The nouns of each title, or None where they have not been prepared."""
        return _find(self.folder, "title_nouns")

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What ``meta.json`` says of the data; empty where there is none."""
        path = _find(self.folder, "meta")
        return json.loads(read_bytes(path)) if path else {}

    @property
    def name(self) -> str:
        """The catalogue's name: ``meta.json``'s, else the folder's."""
        return self.meta.get("name", self.folder.name) + self.suffix

    def signature(self) -> tuple[tuple[str, int, int], ...]:
        """Name, size and time of each file: tells cheaply whether anything changed."""
        names = (f"items_ins_v2{self.suffix}", "items_human_ins", "title_nouns", "meta")
        paths = [self.items, *filter(None, (_find(self.folder, name) for name in names))]
        return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in paths)

    def _part(self, name: str) -> Path:
        path = _find(self.folder, name)
        if path is None:
            raise FileNotFoundError(
                f"no {name}.json or .json.gz in {self.folder}; expected there: {_EXPECTED}"
            )
        return path


def locate(data: str | os.PathLike[str] | None = None) -> DataFiles:
    """Find a catalogue's files.

    Args:
        data: a folder; or the products' file in it, which chooses between the full and the small set where a
            folder holds both; or None for the catalogue that ships.

    Raises:
        FileNotFoundError: no such folder, or no products in it.
        ValueError: the folder holds both sets and ``data`` does not say which.
    """
    if data is None:
        folder = asset("webshop", "v1")
        return DataFiles(None, folder, _items_in(folder), "")
    path = Path(data).expanduser().resolve()
    if path.is_dir():
        items, folder = _items_in(path), path
    elif path.is_file() and _stem(path) in _ITEM_NAMES:
        items, folder = path, path.parent
    else:
        raise FileNotFoundError(
            f"data={str(data)!r} is no WebShop data folder; give a folder with {_EXPECTED}"
        )
    return DataFiles(str(path), folder, items, "_1000" if _stem(items).endswith("_1000") else "")


def read_bytes(path: Path) -> bytes:
    """Return a file's content, decompressed if its name ends in ``.gz``."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def read_json(path: Path) -> tuple[Any, str]:
    """Return a JSON file's value and the sha256 of its decompressed text.

    Raises:
        ValueError: the file is no JSON.
    """
    content = read_bytes(path)
    try:
        return json.loads(content), hashlib.sha256(content).hexdigest()
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); fetch or write it again") from error


def _items_in(folder: Path) -> Path:
    found = [path for path in (_find(folder, name) for name in _ITEM_NAMES) if path]
    if not found:
        raise FileNotFoundError(f"no products in {folder}; expected there: {_EXPECTED}")
    if len(found) > 1:
        raise ValueError(
            f"{folder} holds the full and the small set ({', '.join(path.name for path in found)}); "
            "give data= the path of the products' file that you mean"
        )
    return found[0]


def _find(folder: Path, name: str) -> Path | None:
    return next(
        (path for path in (folder / f"{name}.json", folder / f"{name}.json.gz") if path.is_file()), None
    )


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json")
