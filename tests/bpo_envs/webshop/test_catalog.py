"""The catalogue as a shared, fingerprinted, immutable thing."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from bpo_envs.webshop import catalog as module
from bpo_envs.webshop.catalog import load_catalog
from webshop_data import folder, human_instruction, row


def rows(count=3):
    return [row(f"B00000000{i}", name=f"Oak Desk Lamp Number {i}") for i in range(count)]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A user's cache of this test's own, in which even small indexes are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_CACHED_FROM", 1)
    return tmp_path / "cache"


def test_the_same_settings_give_the_same_object():
    assert load_catalog() is load_catalog(None, "synthetic", 42)


def test_catalogues_of_the_same_files_share_products_and_index():
    assert load_catalog().products is load_catalog(goals="human").products
    assert load_catalog().index is load_catalog(catalog_seed=1).index


def test_the_shipped_fingerprint_is_what_it_was():
    """A change of the shipped files, or of what makes a task, must be seen."""
    assert load_catalog().fingerprint == "9d29ca761d38db5bb064367be389028611c7d2c7d590ec936fbdc7ef318737b5"
    assert (
        load_catalog(goals="human").fingerprint
        == "e50c2cdad6e71aceb7b5beaa207fbb17a9435c2ea4dc510aaac7edd2db70af65"
    )


def test_everything_that_decides_a_task_is_in_the_fingerprint(tmp_path):
    data = folder(tmp_path / "a", rows(), human={"B000000001": [human_instruction("B000000001")]})
    other = folder(tmp_path / "b", rows(2), human={})
    prints = {
        load_catalog(*arguments).fingerprint
        for arguments in [
            (data,),
            (data, "human"),
            (data, "synthetic", 1),
            (data, "synthetic", 42, "heuristic"),
            (other,),
        ]
    }
    assert len(prints) == 5


def test_gzipped_files_elsewhere_have_the_same_fingerprint(tmp_path):
    plain = load_catalog(folder(tmp_path / "a", rows()))
    packed = load_catalog(folder(tmp_path / "b", rows(), ending=".json.gz"))
    assert plain.fingerprint == packed.fingerprint


def test_changed_files_are_read_again(tmp_path):
    before = load_catalog(folder(tmp_path, rows(2)))
    after = load_catalog(folder(tmp_path, rows(3)))
    assert (len(before.products), len(after.products)) == (2, 3)


def test_it_travels_by_reference():
    catalog = load_catalog()
    packed = pickle.dumps(catalog)
    assert len(packed) < 300
    assert pickle.loads(packed) is catalog
    assert copy.deepcopy(catalog) is catalog


def test_another_process_loads_the_same_catalogue():
    catalog = load_catalog(catalog_seed=7)
    script = (
        "import pickle, sys; catalog = pickle.loads(bytes.fromhex(sys.argv[1])); print(catalog.fingerprint)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, pickle.dumps(catalog).hex()],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert run.stdout.strip() == catalog.fingerprint


def test_other_files_in_the_other_process_are_an_error(tmp_path):
    packed = pickle.dumps(load_catalog(folder(tmp_path, rows(2))))
    folder(tmp_path, rows(3))
    with pytest.raises(ValueError, match="use the same data files in both processes"):
        pickle.loads(packed)


def test_it_cannot_be_changed():
    catalog = load_catalog()
    with pytest.raises(AttributeError):
        catalog.goals = ()
    with pytest.raises(TypeError):
        catalog.prices["B0Z6N5V7WQ"] = 0.0
    with pytest.raises(AttributeError):
        catalog.products[0].title = ""


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("synthetic", {"test": 500, "dev": 1000, "train": 3796, "all": 5296}),
        ("human", {"test": 500, "dev": 1000, "train": 198, "all": 1698}),
    ],
)
def test_splits_have_the_documented_sizes(kind, sizes):
    catalog = load_catalog(goals=kind)
    assert {split: len(catalog.panel(split)) for split in sizes} == sizes


def test_splits_do_not_overlap_and_make_up_the_whole():
    catalog = load_catalog()
    parts = [catalog.panel(split).task_ids for split in ("test", "dev", "train")]
    assert sum(parts, ()) == catalog.panel("all").task_ids


def test_a_task_is_named_by_its_place_in_the_whole_order():
    assert load_catalog().panel("dev").task_ids[:2] == ("synthetic-500", "synthetic-501")


def test_an_unknown_split_is_an_error():
    with pytest.raises(
        ValueError, match=r"unknown split 'eval'; expected one of 'test', 'dev', 'train', 'all'"
    ):
        load_catalog().panel("eval")


def test_an_empty_split_says_how_many_goals_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"split 'train' of .* is empty: .* has 6 synthetic goals"):
        load_catalog(folder(tmp_path, rows())).panel("train")


@pytest.mark.parametrize(
    "settings", [{"goals": "all"}, {"nouns": "spacy"}, {"catalog_seed": "42"}, {"catalog_seed": True}]
)
def test_an_unknown_setting_is_an_error_that_shows_it(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name}="):
        load_catalog(**settings)


def test_missing_title_nouns_name_the_command(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m bpo_envs prepare .*nouns='heuristic'"):
        load_catalog(folder(tmp_path, rows(), nouns=False))


def test_title_nouns_of_other_data_are_an_error(tmp_path):
    folder(tmp_path, rows(2))
    other = folder(tmp_path, rows(3), nouns=False)
    with pytest.raises(ValueError, match=r"does not hold product B000000002.*prepare --force"):
        load_catalog(other)


def test_by_wish_the_nouns_are_guessed(tmp_path):
    data = folder(tmp_path, [row(name="Adjustable Oak Lamp with 3 USB Ports")], nouns=False)
    (product,) = load_catalog(data, nouns="heuristic").products
    assert product.noun_list == ("oak", "lamp", "usb", "ports")


def test_human_goals_need_their_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"items_human_ins\.json"):
        load_catalog(folder(tmp_path, rows()), "human")


def test_products_without_a_list_of_attributes_get_upstreams_word(tmp_path):
    (product,) = load_catalog(folder(tmp_path, rows(1), instructions={})).products
    assert product.attributes == ("DUMMY_ATTR",)


def test_a_small_index_is_not_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_catalog(folder(tmp_path / "data", rows()))
    assert not (tmp_path / "cache").exists()


def test_a_large_index_is_kept_and_found_again(tmp_path, cache, monkeypatch):
    built = load_catalog(folder(tmp_path / "a", rows()))
    assert [path.name.split("-")[0] for path in (cache / "bpo-envs").iterdir()] == ["webshop"]
    monkeypatch.setattr(module.Index, "build", None)  # to build again would fail
    found = load_catalog(folder(tmp_path / "b", rows(), ending=".json.gz"))
    assert found.search("lamp number 2") == built.search("lamp number 2") != ()


def test_a_kept_index_is_a_memory_map(tmp_path, cache):
    index = load_catalog(folder(tmp_path / "a", rows())).index.index
    assert index.documents.base is not None
    assert not index.documents.flags.writeable
