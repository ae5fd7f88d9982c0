"""Checkpoints: whole at every moment, checked when read."""

from __future__ import annotations

import json
import pickle
import shutil

import pytest
import torch

from bpo_train.checkpoint import CheckpointError, find_checkpoint, load_checkpoint, save_checkpoint
from bpo_train.policy import FormatOptions, TinyModel, load_policy, new_policy
from tiny_models import tiny_tokenizer

STATE = {"cursor": 7, "schedule": {"entropies": [0.5, 1.25]}}
TENSORS = {"generator": torch.arange(5, dtype=torch.uint8), "learner": {"step": torch.tensor(3.0), "lr": 0.1}}


@pytest.fixture(scope="module")
def policy():
    return new_policy(tiny_tokenizer(), TinyModel(16, 1, 4, 2, 64), FormatOptions(), 0)


@pytest.fixture
def folder(tmp_path, policy):
    save_checkpoint(tmp_path / "checkpoint", policy, STATE, TENSORS)
    return tmp_path / "checkpoint"


def test_what_is_saved_is_read(folder, policy):
    state, tensors = load_checkpoint(folder)
    assert state == STATE
    assert torch.equal(tensors["generator"], TENSORS["generator"])
    assert tensors["learner"] == TENSORS["learner"]
    loaded = load_policy(str(folder), FormatOptions())
    assert all(torch.equal(a, b) for a, b in zip(loaded.model.parameters(), policy.model.parameters()))


def test_nothing_else_is_left_beside_it(folder):
    assert [path.name for path in folder.parent.iterdir()] == ["checkpoint"]


def test_a_newer_one_takes_its_place(folder, policy):
    save_checkpoint(folder, policy, {**STATE, "cursor": 8}, TENSORS)
    assert load_checkpoint(folder)[0]["cursor"] == 8
    assert [path.name for path in folder.parent.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("damage", ["model.safetensors", "trainer.pt", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("how", ["missing", "cut", "changed"])
def test_a_damaged_file_is_named(folder, damage, how):
    path = folder / damage
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if how == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=damage):
        load_checkpoint(folder)


def test_a_damaged_state_is_refused(folder):
    (folder / "trainer.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"trainer\.json is missing or damaged"):
        load_checkpoint(folder)


def test_another_format_is_refused(folder):
    state = json.loads((folder / "trainer.json").read_text())
    (folder / "trainer.json").write_text(json.dumps({**state, "format": 99}))
    with pytest.raises(CheckpointError, match="format 99; this version reads 1"):
        load_checkpoint(folder)


def test_tensors_are_read_without_running_code(folder):
    class Trap:
        def __reduce__(self):
            return print, ("run",)

    torch.save({"trap": Trap()}, folder / "trainer.pt")
    state = json.loads((folder / "trainer.json").read_text())
    del state["files"]["trainer.pt"]  # even where the sums don't tell
    (folder / "trainer.json").write_text(json.dumps(state))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load_checkpoint(folder)


# Kills


def test_a_kill_between_the_renames_leaves_the_older_one(folder, policy):
    folder.replace(folder.with_name("checkpoint.old"))
    assert find_checkpoint(folder) == folder.with_name("checkpoint.old")
    save_checkpoint(folder, policy, {**STATE, "cursor": 8}, TENSORS)
    assert find_checkpoint(folder) == folder
    assert load_checkpoint(folder)[0]["cursor"] == 8


def test_a_kill_during_writing_leaves_the_older_one(folder, policy):
    draft = folder.with_name("checkpoint.partial")
    shutil.copytree(folder, draft)
    (draft / "trainer.json").unlink()
    assert find_checkpoint(folder) == folder
    save_checkpoint(folder, policy, STATE, TENSORS)
    assert not draft.exists()


def test_a_disk_that_is_full_leaves_the_older_one(folder):
    class Full:
        def save(self, folder):
            raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match="No space left on device; the checkpoint before it is whole"):
        save_checkpoint(folder, Full(), {"cursor": 8}, {})  # type: ignore[arg-type]
    assert load_checkpoint(folder)[0] == STATE
    assert [path.name for path in folder.parent.iterdir()] == ["checkpoint"]


def test_where_there_is_none_that_is_said(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        find_checkpoint(tmp_path / "checkpoint")
