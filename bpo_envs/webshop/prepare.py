"""``python -m bpo_envs prepare DATA``: make a WebShop data folder ready to use.

Two things are too dear to do whenever an environment is made: tagging the nouns of the products' titles,
which needs a language model, and for large data building the search index. Both are done here once. The nouns
go into the folder (``title_nouns.json``, and the tagger's name into ``meta.json``), the index into the user's
cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bpo_envs.webshop.catalog import GOAL_KINDS, load_catalog
from bpo_envs.webshop.data import DataFiles, locate, read_rows
from bpo_envs.webshop.goals import SPLITS
from bpo_envs.webshop.products import kept_rows

MODEL = "en_core_web_sm"
"""The spaCy model that upstream's code loads."""


class MissingComponent(RuntimeError):
    """Something that only this command needs is not installed; the message says how to get it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "data", metavar="DATA", help="folder with upstream's files, or the products' file in it"
    )
    parser.add_argument(
        "--nouns",
        choices=("spacy", "heuristic"),
        default="spacy",
        help="spacy: write title_nouns.json; heuristic: none, for environments with nouns='heuristic'",
    )
    parser.add_argument("--model", default=MODEL, help=f"name or folder of a spaCy model (default {MODEL})")
    parser.add_argument("--force", action="store_true", help="tag again where title_nouns.json exists")


def main(arguments: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    files = locate(arguments.data)
    if arguments.nouns == "spacy":
        if files.title_nouns is None or arguments.force:
            print(f"wrote {write_nouns(files, arguments.model)}")
        else:
            print(f"kept {files.title_nouns} (--force tags again)")
    for line in describe(arguments.data, "heuristic" if arguments.nouns == "heuristic" else None):
        print(line)
    return 0


def write_nouns(files: DataFiles, model: str = MODEL) -> Path:
    """Tag the titles of a catalogue's products and write ``title_nouns.json`` beside them.

    Returns:
        The file.

    Raises:
        MissingComponent: spaCy or the model is not installed.
        ValueError: a malformed row.
    """
    titles = {row["asin"]: row["name"] for row in kept_rows(read_rows(files.items, hashlib.sha256()))}
    tagger, identity = load_tagger(model)
    nouns = dict(zip(titles, tag_nouns(tagger, titles.values())))
    meta_path = files.folder / "meta.json"
    _write_json(meta_path, {**files.meta, "noun_model": identity})
    path = files.title_nouns or files.folder / "title_nouns.json"
    if path.suffix == ".gz":  # replaced by the plain file, which is found first
        path = path.with_suffix("")
    _write_json(path, nouns)
    return path


def load_tagger(model: str = MODEL) -> tuple[Any, dict[str, str]]:
    """Load a spaCy pipeline.

    Returns:
        The pipeline, and what identifies it: ``package``, ``model``, ``version``, ``spacy``.

    Raises:
        MissingComponent: spaCy or the model is not installed.
    """
    try:
        import spacy
    except ImportError:
        raise MissingComponent(
            "tagging titles needs spaCy, which is not installed: pip install 'bpo-envs[webshop-nlp]'; "
            "or use --nouns heuristic and make environments with nouns='heuristic'"
        ) from None
    try:
        tagger = spacy.load(model, exclude=["ner", "lemmatizer"])  # neither decides what is a noun
    except OSError:
        raise MissingComponent(
            f"spaCy has no model {model!r} here: python -m spacy download {MODEL}; or give --model the name "
            "or folder of an installed one"
        ) from None
    meta = tagger.meta
    return tagger, {
        "package": model,
        "model": f"{meta['lang']}_{meta['name']}",
        "version": meta["version"],
        "spacy": spacy.__version__,
    }


def tag_nouns(tagger: Any, titles: Iterable[str]) -> Iterator[list[str]]:
    """Yield the nouns and names of each title: lower-case, in order, duplicates kept."""
    for title in tagger.pipe(titles):
        yield [token.text.lower() for token in title if token.pos_ in ("NOUN", "PROPN")]


def describe(data: str | os.PathLike[str], nouns: str | None = None) -> Iterator[str]:
    """Load the catalogues of a folder, which also builds a large index, and say what is in them."""
    for kind in GOAL_KINDS:
        try:
            catalog = load_catalog(data, kind, nouns=nouns)
        except FileNotFoundError as error:
            yield f"no {kind} goals: {error}"
            continue
        sizes = {split: len(catalog.goals[cut]) for split, cut in SPLITS.items()}
        yield f"{catalog.name}: {len(catalog.products)} products, {kind} goals by split {sizes}"
        yield f"  fingerprint {catalog.fingerprint} (catalog_seed 42)"


def _write_json(path: Path, value: Any) -> None:
    """Replace a file at once, so that no reader sees half of it."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    draft.replace(path)
