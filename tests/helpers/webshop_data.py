"""Small WebShop data folders, made by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def row(asin: str = "B000000001", **fields: Any) -> dict[str, Any]:
    """A row of ``items_shuffle``: a desk lamp, but for the fields given."""
    lamp = {
        "asin": asin,
        "name": "Oak Desk Lamp",
        "full_description": "Warm light for long evenings.",
        "small_description": ["Solid oak", "USB port"],
        "pricing": "$35.00",
        "customization_options": {"Color": [{"value": "Black"}, {"value": "White"}]},
        "images": ["https://shop.invalid/lamp.jpg"],
        "product_category": "Home › Lamps › Desk Lamps",
        "category": "garden",
        "query": "desk lamps",
    }
    return {**lamp, **fields}


def write(path: Path, value: Any) -> None:
    """Write JSON, gzipped if the name ends in ``.gz``."""
    content = json.dumps(value).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def folder(
    path: Path,
    rows: list[dict[str, Any]],
    *,
    instructions: dict[str, Any] | None = None,
    human: dict[str, Any] | None = None,
    nouns: bool = True,
    suffix: str = "",
    ending: str = ".json",
) -> Path:
    """Write a data folder.

    Args:
        path: the folder, made if need be.
        rows: the products.
        instructions: ``items_ins_v2``; by default each product has an instruction for "solid oak".
        human: ``items_human_ins``; none by default.
        nouns: whether to write ``title_nouns``: the words of each title.
        suffix: ``"_1000"`` for the small set's names.
        ending: ``".json"`` or ``".json.gz"``.
    """
    path.mkdir(exist_ok=True)
    if instructions is None:
        detail = {
            "attributes": ["solid oak"],
            "instruction": "Find me desk lamps",
            "instruction_attributes": ["solid oak"],
        }
        instructions = {product["asin"]: detail for product in rows}
    write(path / f"items_shuffle{suffix}{ending}", rows)
    write(path / f"items_ins_v2{suffix}{ending}", instructions)
    if human is not None:
        write(path / f"items_human_ins{ending}", human)
    if nouns:
        words = {product["asin"]: str(product.get("name")).lower().split() for product in rows}
        write(path / f"title_nouns{ending}", words)
    return path


def human_instruction(asin: str, **fields: Any) -> dict[str, Any]:
    """A row of ``items_human_ins``."""
    return {
        "asin": asin,
        "instruction": "i want a lamp of oak.",
        "instruction_attributes": ["solid oak"],
        "instruction_options": ["black"],
        **fields,
    }
