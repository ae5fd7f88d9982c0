"""Finding and reading the files of a data folder."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.webshop import data
from bpo_envs.webshop.data import locate, read_mapping, read_rows
from webshop_data import folder, row, write


def rows_of(path):
    return list(read_rows(path, hashlib.sha256()))


def test_without_a_folder_the_shipped_catalogue_is_found():
    files = locate()
    assert (files.name, files.source) == ("bpo-webshop-v1", None)


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
@pytest.mark.parametrize("suffix", ["", "_1000"])
def test_upstreams_names_are_found(tmp_path, suffix, ending):
    files = locate(folder(tmp_path, [row()], suffix=suffix, ending=ending))
    assert files.items.name == f"items_shuffle{suffix}{ending}"
    assert files.instructions.name == f"items_ins_v2{suffix}{ending}"
    assert files.title_nouns.name == f"title_nouns{ending}"


def test_a_folder_with_both_sets_asks_which(tmp_path):
    folder(tmp_path, [row()])
    folder(tmp_path, [row()], suffix="_1000")
    with pytest.raises(ValueError, match=r"items_shuffle\.json, items_shuffle_1000\.json.*give data="):
        locate(tmp_path)


def test_the_products_file_says_which_set(tmp_path):
    folder(tmp_path, [row()])
    folder(tmp_path, [row()], suffix="_1000")
    assert locate(tmp_path / "items_shuffle_1000.json").instructions.name == "items_ins_v2_1000.json"
    assert locate(tmp_path / "items_shuffle.json").instructions.name == "items_ins_v2.json"


def test_a_missing_folder_is_named_with_what_should_be_in_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no-such.*items_shuffle\.json"):
        locate(tmp_path / "no-such")


def test_a_folder_without_products_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="no products in"):
        locate(tmp_path)


def test_a_missing_part_is_named(tmp_path):
    files = locate(folder(tmp_path, [row()]))
    with pytest.raises(FileNotFoundError, match=r"no items_human_ins\.json"):
        _ = files.human_instructions


def test_plain_and_gzipped_files_have_the_same_hash(tmp_path):
    write(tmp_path / "a.json", {"b": 1})
    write(tmp_path / "a.json.gz", {"b": 1})
    assert read_mapping(tmp_path / "a.json") == read_mapping(tmp_path / "a.json.gz")


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_a_file_that_is_no_json_object_is_named(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.json"):
        read_mapping(path)


@given(
    rows=st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=4), max_size=8),
    indent=st.sampled_from([None, 1]),
    block=st.integers(1, 64),
)
def test_rows_read_in_pieces_are_the_rows_read_at_once(tmp_path_factory, rows, indent, block):
    path = tmp_path_factory.mktemp("rows") / "items.json"
    content = json.dumps(rows, indent=indent, ensure_ascii=False).encode()
    path.write_bytes(content)
    digest = hashlib.sha256()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "_BLOCK", block)
        patch.setattr(data, "_LONGEST_ROW", 10_000)
        assert list(read_rows(path, digest)) == rows
    assert digest.hexdigest() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("content", ["", "{}", '[{"a": 1}', '[{"a": 1}, {"a"', '[{"a": 1}, oops, {"a": 2}]'])
def test_a_file_that_is_no_list_of_rows_is_named(tmp_path, content):
    path = tmp_path / "items.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"items\.json is no JSON list of products"):
        rows_of(path)


def test_a_malformed_row_stops_the_reading_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "_BLOCK", 16)
    monkeypatch.setattr(data, "_LONGEST_ROW", 32)
    path = tmp_path / "items.json"
    path.write_text('[{"a": oops}' + ', {"a": 1}' * 1000 + "]")
    with pytest.raises(ValueError, match="a row is malformed"):
        rows_of(path)
