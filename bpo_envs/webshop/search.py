"""Full-text search that returns what Lucene returns, in the same order.

BM25 with k1 = 0.9 and b = 0.4 over the terms of `analysis`. Exactness hangs on three details of Lucene 9.5:
its arithmetic is in float32, it keeps a document's length in one byte (so long lengths are rounded down), and
ties go by id. With true lengths the order of the top 50 agrees with Lucene's for one query in two hundred;
with these, for all.

An index is a few flat arrays: the postings of term t are the slice ``offsets[t]:offsets[t + 1]`` of two
arrays, the documents that hold t and one number for each. Documents are numbered in the order of their ids,
so that a smaller number wins a tie. Saved arrays are opened as memory maps: processes share their pages.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bpo_envs.webshop.analysis import analyze

K1, B = np.float32(0.9), np.float32(0.4)
FORMAT = 1  # of saved indexes; raise it whenever analysis or the arrays change
_ARRAYS = ("ids", "offsets", "documents", "denominators")


def quantised_length(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths as Lucene keeps them in one byte: exact below 40, then 24 plus four significant bits."""
    excess = np.maximum(tokens - 24, 0)
    bits = np.frexp(excess)[1]  # bit length
    dropped = np.maximum(bits - 4, 0)
    return np.minimum(tokens, 24) + (excess >> dropped << dropped)


@dataclass(frozen=True, eq=False)
class Index:
    """A searchable set of documents; make one with `build` or `load`.

    Arrays: ``ids`` [documents], sorted; ``offsets`` [terms + 1]; ``documents`` and ``denominators``
    [postings], the latter being 1 + tf / (k1 ((1 - b) + b length / mean length)) of each posting.
    """

    vocabulary: dict[str, int]
    ids: NDArray[np.str_]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    denominators: NDArray[np.float32]
    filled: int  # documents that hold any term: Lucene's document count
    idf: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        frequency = np.diff(self.offsets)
        idf = np.log(1 + (self.filled - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        object.__setattr__(self, "idf", idf)

    @classmethod
    def build(cls, ids: Sequence[str], texts: Sequence[str]) -> Index:
        """Index one text per id.

        Raises:
            ValueError: ids are repeated, or ids and texts differ in number.
        """
        if len(ids) != len(texts) or len(set(ids)) != len(ids):
            raise ValueError(
                f"expected one text for each of {len(ids)} distinct ids, "
                f"got {len(texts)} texts for {len(set(ids))} distinct ids"
            )
        vocabulary: dict[str, int] = {}
        terms, documents, counts, lengths = array("i"), array("i"), array("i"), array("q")
        order = sorted(range(len(ids)), key=ids.__getitem__)
        for number, position in enumerate(order):
            tokens = analyze(texts[position])
            bag = Counter(tokens)
            terms.extend([vocabulary.setdefault(term, len(vocabulary)) for term in bag])
            documents.extend([number] * len(bag))
            counts.extend(bag.values())
            lengths.append(len(tokens))
        by_term = np.argsort(np.asarray(terms, np.int32), kind="stable")
        document = np.asarray(documents, np.int32)[by_term]
        length = np.asarray(lengths, np.int64)
        norm = _inverse_norm(length)
        return cls(
            vocabulary=vocabulary,
            ids=np.array([ids[position] for position in order], dtype=np.str_),
            offsets=np.concatenate(([0], np.cumsum(np.bincount(terms, minlength=len(vocabulary))))).astype(
                np.int64
            ),
            documents=document,
            denominators=1 + np.asarray(counts, np.float32)[by_term] * norm[document],
            filled=int(np.count_nonzero(length)),
        )

    def search(self, query: str, k: int = 50) -> tuple[str, ...]:
        """Return the ids of the best ``k`` >= 1 documents (fewer if fewer hold any term), best first."""
        return tuple(self.ids[self._ranked(query, k)[0]].tolist())

    def search_scores(self, query: str, k: int = 50) -> list[tuple[str, float]]:
        """Return the best ``k`` documents as (id, BM25 score), best first; ties in the order of ids."""
        best, scores = self._ranked(query, k)
        return list(zip(self.ids[best].tolist(), scores.tolist()))

    def _ranked(self, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Numbers and scores of the best documents. A term given n times weighs n times."""
        documents, parts = [], []
        for term, count in Counter(analyze(query)).items():
            number = self.vocabulary.get(term)
            if number is not None:
                postings = slice(self.offsets[number], self.offsets[number + 1])
                weight = np.float32(count) * self.idf[number]
                documents.append(self.documents[postings])
                parts.append(weight - weight / self.denominators[postings])
        if not documents:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        # Lucene, too, sums float32 parts in float64 and rounds the sum.
        total = np.bincount(np.concatenate(documents), np.concatenate(parts)).astype(np.float32)
        found = np.flatnonzero(total)
        if len(found) > k:
            least = np.partition(total, len(total) - k)[len(total) - k]
            found = np.flatnonzero(total >= least)
        best = found[np.argsort(-total[found], kind="stable")][:k]
        return best, total[best]

    def save(self, folder: str | Path) -> None:
        """Write the index to ``folder``, replacing what is there; nobody ever sees a half-written one.

        If two processes save there at once, one of the two indexes stays.
        """
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for name in _ARRAYS:
                np.save(draft / f"{name}.npy", getattr(self, name), allow_pickle=False)
            (draft / "terms.txt").write_text("\n".join(self.vocabulary), encoding="utf-8", newline="\n")
            checks = {path.name: _checksum(path) for path in sorted(draft.iterdir())}
            meta = {"format": FORMAT, "filled": self.filled, "crc32": checks}
            (draft / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
            _replace(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | Path) -> Index:
        """Open a saved index as memory maps.

        Raises:
            FileNotFoundError: there is no index in ``folder``.
            ValueError: it was written by another version, or a file is damaged.
        """
        folder = Path(folder)
        path = folder / "meta.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"no search index in {str(folder)!r}; make one with Index.build(...).save(...)"
            )
        try:
            meta = json.loads(path.read_text(encoding="utf-8"))
            if meta["format"] != FORMAT:
                raise ValueError(f"its format is {meta['format']}, this version reads {FORMAT}")
            for name, checksum in meta["crc32"].items():
                if _checksum(folder / name) != checksum:
                    raise ValueError(f"{name} does not match its checksum")
            terms = (folder / "terms.txt").read_text(encoding="utf-8").split("\n")
            vocabulary = {term: number for number, term in enumerate(terms) if term}
            arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
            return cls(vocabulary=vocabulary, filled=meta["filled"], **arrays)
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise ValueError(
                f"cannot use the search index in {str(folder)!r} ({error}); delete it and build it again"
            ) from error


class CachedIndex:
    """An index that remembers its latest results: siblings of one task repeat each other's queries."""

    def __init__(self, index: Index, size: int = 8192) -> None:
        self.index = index
        self.search = lru_cache(maxsize=size)(index.search)


def _inverse_norm(length: NDArray[np.int64]) -> NDArray[np.float32]:
    """1 / (k1 ((1 - b) + b length / mean length)), every step rounded to float32 as Java does."""
    filled = max(int(np.count_nonzero(length)), 1)
    mean = np.float32(max(int(length.sum()), 1) / filled)
    one = np.float32(1)
    return one / (K1 * ((one - B) + B * quantised_length(length).astype(np.float32) / mean))


def _replace(draft: Path, folder: Path) -> None:
    """Put a finished folder where another may be; open memory maps of the old one stay valid."""
    old = draft.with_name(draft.name + "-old")
    if folder.exists():
        folder.rename(old)
    try:
        draft.rename(folder)
    except OSError:
        if not (folder / "meta.json").is_file():  # else another process was faster
            raise
    shutil.rmtree(old, ignore_errors=True)


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum
