"""The run folder: nothing half written, nothing overwritten, records of an interrupted run taken back."""

from __future__ import annotations

import json

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bpo_train.manifest import RunFolder, machine


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.create(tmp_path / "run", "bpo")
    yield made
    made.close()


def test_a_folder_is_made_where_it_is_wanted(folder, tmp_path):
    assert folder.path == tmp_path / "run"
    assert folder.path.is_dir()


def test_without_a_wish_it_is_named_after_time_and_method(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = RunFolder.create(None, "bpo")
    assert made.path.parent.name == "runs"
    assert made.path.name.endswith("-bpo")


def test_a_folder_with_other_things_in_it_will_do(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    RunFolder.create(tmp_path, "bpo")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_with_a_run_in_it_will_not(folder):
    folder.write_json("manifest.json", {})
    RunFolder.check_free(folder.path)  # killed before its first checkpoint: nothing to lose
    (folder.path / "checkpoint").mkdir()
    with pytest.raises(FileExistsError, match="holds a run already; choose another --output, or remove it"):
        RunFolder.create(folder.path, "bpo")
    with pytest.raises(FileExistsError):
        RunFolder.check_free(folder.path)
    RunFolder.check_free(None)


def test_an_existing_run_is_opened_and_nothing_else(folder, tmp_path):
    with pytest.raises(ValueError, match="holds no run"):
        RunFolder.existing(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    folder.write_json("manifest.json", {})
    assert RunFolder.existing(folder.path).path == folder.path


def test_json_is_replaced_in_one_step(folder):
    folder.write_json("a.json", {"x": 1})
    folder.write_json("a.json", {"x": [1.5, None]})
    assert folder.read_json("a.json") == {"x": [1.5, None]}
    assert [path.name for path in folder.path.iterdir()] == ["a.json"]


def test_missing_and_damaged_json_is_named(folder):
    with pytest.raises(ValueError, match=r"a\.json is missing or damaged"):
        folder.read_json("a.json")
    (folder.path / "a.json").write_text("{")
    with pytest.raises(ValueError, match=r"a\.json is missing or damaged"):
        folder.read_json("a.json")


def test_metrics_are_appended_and_read_back(folder):
    assert folder.metrics() == []
    folder.log(1, {"loss": 0.5})
    folder.log(2, {"loss": 0.25, "kl": 0.0})
    assert folder.metrics() == [{"update": 1, "loss": 0.5}, {"update": 2, "loss": 0.25, "kl": 0.0}]


def test_an_interrupted_runs_later_records_are_taken_back(folder):
    for update in range(4):
        folder.log(update, {"loss": float(update)})
    with (folder.path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 4, "lo')  # killed while writing
    folder.close()
    resumed = RunFolder(folder.path)
    resumed.forget_after(2)
    resumed.log(3, {"loss": 30.0})
    resumed.close()
    assert [record["loss"] for record in resumed.metrics()] == [0.0, 1.0, 2.0, 30.0]
    events = EventAccumulator(str(folder.path / "tensorboard"), purge_orphaned_data=True).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 30),
    ]


def test_the_machine_is_described_in_json():
    found = json.loads(json.dumps(machine()))
    assert found["cpus"] >= 1
    assert found["packages"]["torch"] != "not installed"
    assert {"python", "platform", "gpus", "torch_threads"} <= found.keys()
