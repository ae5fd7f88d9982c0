"""Search: what Lucene returned on the same products, BM25's definition, and saved indexes."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpo_envs.webshop.analysis import analyze
from bpo_envs.webshop.catalog import load_catalog
from bpo_envs.webshop.search import CachedIndex, Index, quantised_length


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def index():
    products = load_catalog().products
    return Index.build([p.asin for p in products], [p.index_text() for p in products])


@pytest.fixture(scope="module")
def recorded(root):
    return lines(root / "tests" / "fixtures" / "webshop_v1" / "search_top50.jsonl.gz")


def test_the_top_50_of_every_recorded_query_are_lucenes_in_order(index, recorded):
    assert len(recorded) == 250
    wrong = [case["query"] for case in recorded if index.search(case["query"]) != tuple(case["asins"])]
    assert wrong == []


def test_scores_are_lucenes_as_far_as_they_were_recorded(index, recorded):
    for case in recorded:
        scores = [score for _, score in index.search_scores(case["query"], 50)]
        np.testing.assert_allclose(scores, case["scores"], rtol=0, atol=0.000051)  # four decimals were kept


def test_results_on_the_real_products_are_those_of_the_recorded_episodes(shared):
    folder = shared / "data" / "webshop" / "real1000"
    catalog = load_catalog(folder)
    searches = 0
    for path in sorted((folder / "golden").glob("episodes_*.jsonl.gz")):
        for step in (step for episode in lines(path) for step in episode["steps"]):
            action = re.match(r"search\[(.+)\]", step["action"])
            if action and "available_actions" in step:
                shown = [
                    c.upper() for c in step["available_actions"]["clickables"] if c.upper() in catalog.by_asin
                ]
                assert list(catalog.search(action[1].lower())[:10]) == shown
                searches += 1
    assert searches > 50


# Lucene's SmallFloat.byte4ToInt(intToByte4(n)): 24 exact values, then 3 bits after the leading one.
@pytest.mark.parametrize(
    ("length", "kept"),
    [(0, 0), (24, 24), (39, 39), (40, 40), (41, 40), (55, 54), (56, 56), (59, 56), (100, 96), (1000, 984)],
)
def test_lengths_keep_four_significant_bits_above_24(length, kept):
    assert quantised_length(np.array([length]))[0] == kept


def test_a_score_is_bm25_as_defined():
    texts = {"a": "red shoe", "b": "red red hat hat hat", "c": "blue boot", "d": ""}
    index = Index.build(list(texts), list(texts.values()))
    # "hat" twice in the query; 3 documents hold terms, 1 holds it, mean length 9 / 3, length 5, frequency 3
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = 2 * idf * 3 / (3 + 0.9 * (1 - 0.4 + 0.4 * 5 / 3))
    assert index.search_scores("Hats, hat!") == [("b", pytest.approx(expected, rel=1e-6))]


def test_ties_go_by_id_whatever_the_order_of_the_documents():
    index = Index.build(["c", "a", "d", "b"], ["lamp"] * 4)
    assert index.search("lamp") == ("a", "b", "c", "d")
    assert index.search("lamp", 2) == ("a", "b")


@pytest.mark.parametrize("query", ["", " ", "the of", "unheard", "★"])
def test_a_query_without_a_known_term_finds_nothing(query):
    assert Index.build(["a"], ["red shoe"]).search(query) == ()


def test_an_empty_collection_can_be_searched():
    assert Index.build([], []).search("shoe") == ()
    assert Index.build(["a"], [""]).search("shoe") == ()


def test_repeated_ids_are_refused():
    with pytest.raises(ValueError, match="distinct ids"):
        Index.build(["a", "a"], ["red", "blue"])


words = st.lists(st.sampled_from(["red", "blue", "shoe", "hat", "lamp", "soap", "mat"]), max_size=50).map(
    " ".join
)


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=1, max_size=12), words, st.integers(1, 15))
def test_results_are_the_best_by_the_definition(texts, query, k):
    ids = [f"id{number:02}" for number in range(len(texts))]
    found = Index.build(ids, texts).search_scores(query, k)
    reference = definition(ids, texts, query)
    assert len(found) == min(k, len(reference))
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
    worst_left_out = sorted(reference.values(), reverse=True)[len(found) : len(found) + 1]
    for asin, score in found:
        assert score == pytest.approx(reference[asin], rel=1e-5)
        assert all(score >= other * (1 - 1e-5) for other in worst_left_out)


def definition(ids, texts, query):
    """BM25 in double precision, straight from its formula."""
    bags = {name: Counter(analyze(text)) for name, text in zip(ids, texts)}
    filled = sum(1 for bag in bags.values() if bag)
    mean = sum(sum(bag.values()) for bag in bags.values()) / max(filled, 1)
    scores = {}
    for name, bag in bags.items():
        length = quantised_length(np.array([sum(bag.values())]))[0]
        for term, count in Counter(analyze(query)).items():
            if bag[term]:
                holding = sum(1 for other in bags.values() if other[term])
                idf = math.log(1 + (filled - holding + 0.5) / (holding + 0.5))
                part = count * idf * bag[term] / (bag[term] + 0.9 * (0.6 + 0.4 * length / mean))
                scores[name] = scores.get(name, 0.0) + part
    return scores


def test_a_loaded_index_is_a_memory_map_and_equals_the_saved_one(index, recorded, tmp_path):
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    assert isinstance(loaded.documents, np.memmap)
    for case in recorded[:40]:
        assert loaded.search_scores(case["query"], 50) == index.search_scores(case["query"], 50)


def test_saving_replaces_what_is_there_and_leaves_nothing_beside_it(tmp_path):
    Index.build(["a"], ["red"]).save(tmp_path / "index")
    first = Index.load(tmp_path / "index")
    Index.build(["b"], ["red"]).save(tmp_path / "index")
    assert Index.load(tmp_path / "index").search("red") == ("b",)
    assert first.search("red") == ("a",)  # an open map outlives its file
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_an_index_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Index.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["ids.npy", "offsets.npy", "documents.npy", "denominators.npy", "terms.txt", "meta.json"]
)
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_index_is_refused(tmp_path, name, damage):
    Index.build(["a", "b"], ["red shoe", "red hat"]).save(tmp_path / "index")
    path = tmp_path / "index" / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-5] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises((ValueError, FileNotFoundError), match="index"):
        Index.load(tmp_path / "index")


def test_an_index_of_another_version_is_refused(tmp_path):
    Index.build(["a"], ["red"]).save(tmp_path / "index")
    meta = json.loads((tmp_path / "index" / "meta.json").read_text())
    (tmp_path / "index" / "meta.json").write_text(json.dumps({**meta, "format": 0}))
    with pytest.raises(ValueError, match="format is 0"):
        Index.load(tmp_path / "index")


def test_a_repeated_query_is_answered_from_memory():
    cached = CachedIndex(Index.build(["a"], ["red"]))
    assert cached.search("red") == cached.search("red") == ("a",)
    assert cached.search.cache_info().hits == 1
