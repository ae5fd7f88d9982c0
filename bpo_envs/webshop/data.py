"""The files of a WebShop data folder: which there are, and their content.

Upstream's file names are kept, so that a folder made for the original works as it is; each file may be plain
or gzipped. ``title_nouns.json`` is the one file of our own: the nouns of every product's title, worked out
once by ``python -m bpo_envs prepare`` so that no language model is needed at run time.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bpo_envs.assets import asset

_BLOCK = 1 << 22  # bytes
_LONGEST_ROW = 1 << 23  # characters
_GAP = re.compile(r"[\s,]*")
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
        return read_mapping(path)[0] if path else {}

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


def read_mapping(path: Path) -> tuple[dict[str, Any], str]:
    """Return a file's JSON object and the sha256 of its decompressed text.

    Raises:
        ValueError: the file is no JSON object.
    """
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        value = json.loads(content)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no JSON ({error}); fetch or write it again") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a JSON {type(value).__name__}; expected an object")
    return value, hashlib.sha256(content).hexdigest()


def read_rows(path: Path, digest: hashlib._Hash) -> Iterator[Any]:
    """Yield the elements of a JSON list one by one: the full set of products would not fit in memory twice.

    Args:
        path: the file, plain or ``.gz``.
        digest: fed with the decompressed text on the way.

    Raises:
        ValueError: the file is no JSON list.
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    raw_decode = json.JSONDecoder().raw_decode
    text, at, first = "", 0, True
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            text, at = text[at:] + decode(block), 0
            if first and text.strip():
                at, first = _after("[", text, path), False
            while (start := _GAP.match(text, at).end()) < len(text):  # type: ignore[union-attr]
                try:
                    row, at = raw_decode(text, start)
                except ValueError:
                    break  # the block ends within a row
                yield row
            if len(text) - at > _LONGEST_ROW:
                raise _no_json(path, "a row is malformed", text[at : at + 60])
    _after("]" if not first else "[", text[at:], path)


def _after(bracket: str, text: str, path: Path) -> int:
    stripped = text.lstrip(" \t\n\r,")
    if not stripped.startswith(bracket):
        raise _no_json(path, f"expected {bracket!r}", stripped[:60])
    return len(text) - len(stripped) + 1


def _no_json(path: Path, why: str, found: str) -> ValueError:
    return ValueError(f"{path} is no JSON list of products ({why}, found {found!r}); fetch or write it again")


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
