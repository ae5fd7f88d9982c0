"""A whole run in this process: what it writes, that it can be repeated, stopped and gone on with."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bpo_train.__main__ import STOPPED, main
from bpo_train.config import from_plain
from bpo_train.manifest import RunFolder
from bpo_train.policy import FormatOptions, load_policy
from bpo_train.trainer import Trainer
from small_run import arguments, numbers, random_policy


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    random_policy().save(folder)
    return folder


@pytest.fixture(scope="module")
def ran(model, tmp_path_factory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("runs") / "ran"
    assert main(arguments(model, folder)) == 0
    return folder


def read(path: Path):
    return json.loads(path.read_text())


def records(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def updates(folder: Path) -> list[dict[str, float]]:
    """Records of updates, timings left out."""
    return [numbers(record) for record in records(folder) if "returns" in record]


def same_weights(one: Path, other: Path) -> bool:
    a, b = (load_file(folder / "checkpoint" / "model.safetensors") for folder in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# What a run writes


def test_a_run_folder_holds_all_that_a_repetition_needs(ran):
    assert {path.name for path in ran.iterdir()} == {
        "manifest.json",
        "metrics.jsonl",
        "start.json",
        "summary.json",
        "tensorboard",
        "checkpoint",
    }
    assert any((ran / "tensorboard").iterdir())


def test_the_summary_has_the_promised_form(ran):
    summary = read(ran / "summary.json")
    assert summary.keys() == {"start", "end", "difference", "seconds"}
    for when in ("start", "end"):
        assert summary[when].keys() == {"success", "greedy_success", "score", "n"}
        assert summary[when]["n"] == 4
    assert summary["difference"].keys() == {"mean", "low", "high"}
    difference = summary["end"]["success"] - summary["start"]["success"]
    assert summary["difference"]["mean"] == pytest.approx(difference)
    assert summary["seconds"] > 0


def test_the_manifest_states_configuration_shape_and_tasks(ran, model):
    manifest = read(ran / "manifest.json")
    config = from_plain(manifest["config"])
    assert (config.run.model, config.run.output) == (str(model), ran)
    assert (manifest["credit"], manifest["schedule"], manifest["predictable"]) == ("bpo", "entropy", False)
    shape = manifest["branch_points"], manifest["siblings"], manifest["returns_per_prompt"]
    assert shape == (1, 3, 3)
    assert manifest["eval_tasks"]["count"] == 500
    assert len(manifest["train_tasks"]["panel_digest"]) == 64
    assert manifest["train_tasks"]["panel_digest"] != manifest["eval_tasks"]["panel_digest"]
    assert manifest["machine"]["packages"]["torch"] == torch.__version__.split("+")[0] or "torch" in str(
        manifest
    )


def test_there_is_a_record_of_every_update(ran):
    assert [record["update"] for record in updates(ran)] == [1, 2]
    for record in updates(ran):
        assert record["returns"] == 3 * 3
        assert record["snapshots"] > 0
        assert record["peak_live_snapshots"] > 0
        assert record["live_snapshots"] == record["snapshot_bytes"] == 0
        assert record["environment_steps"] == record["decisions"]
        assert record["nondegenerate_steps"] >= 0
        assert record["grad_norm"] > 0
        assert record["mismatch"] < 1e-4  # engine and learner agree
    first, second = updates(ran)
    assert first["kl"] == pytest.approx(0, abs=1e-6)  # the reference is the start
    assert second["kl"] > 0


def test_the_checkpoint_is_a_policy_other_than_the_start(ran, model):
    trained = load_policy(str(ran / "checkpoint"), FormatOptions())
    start = load_policy(str(model), FormatOptions())
    assert trained.tokenizer.get_vocab() == start.tokenizer.get_vocab()
    pairs = zip(trained.model.parameters(), start.model.parameters())
    assert not all(torch.equal(a, b) for a, b in pairs)


def test_the_start_was_evaluated_before_anything_changed(ran):
    start = read(ran / "start.json")
    success = sum(start["sampled"]["won"]) / 4
    assert read(ran / "summary.json")["start"]["success"] == success


# Repetition


def test_the_same_seed_gives_the_same_numbers(ran, model, tmp_path):
    assert main(arguments(model, tmp_path / "again")) == 0
    assert updates(tmp_path / "again") == updates(ran)
    assert same_weights(tmp_path / "again", ran)
    one, other = (read(folder / "summary.json") for folder in (ran, tmp_path / "again"))
    assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_another_seed_gives_others(ran, model, tmp_path):
    assert main(arguments(model, tmp_path / "other", seed=1, eval_tasks=0)) == 0
    assert updates(tmp_path / "other") != updates(ran)


@pytest.mark.parametrize("batch", [1, 7])
def test_the_engines_batch_changes_no_outcome(ran, model, tmp_path, batch):
    folder = tmp_path / "batch"
    assert main(arguments(model, folder, engine_batch=batch, eval_tasks=0, updates=1)) == 0
    (one,), other = updates(folder), updates(ran)[0]
    assert one["generated_tokens"] == other["generated_tokens"]
    assert one == pytest.approx(other, rel=1e-3, abs=1e-5)


def test_without_updates_nothing_changes(model, tmp_path):
    assert main(arguments(model, tmp_path / "run", updates=0)) == 0
    assert read(tmp_path / "run" / "summary.json")["difference"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert updates(tmp_path / "run") == []


def test_without_evaluation_the_summary_is_the_time(model, tmp_path):
    assert main(arguments(model, tmp_path / "run", updates=1, eval_tasks=0)) == 0
    assert read(tmp_path / "run" / "summary.json").keys() == {"seconds"}


def test_evaluations_in_between_are_recorded(model, tmp_path):
    assert main(arguments(model, tmp_path / "run", eval_every=1)) == 0
    found = [record for record in records(tmp_path / "run") if "eval_success" in record]
    assert [record["update"] for record in found] == [0, 1]


# Methods


@pytest.mark.parametrize(
    ("method", "changes", "returns"),
    [
        ("bpo", {"layout": "rows", "minibatches": 2}, 3),
        ("bpo", {"fresh_siblings": True, "epochs": 2}, 4),
        ("bpo-corrected", {"branch_points": 2}, 5),
        ("rloo", {"returns": 4}, 4),
        ("grpo", {"returns": 4, "kl": "k3"}, 4),
        ("reinforce", {"returns": 2}, 2),
    ],
)
def test_every_method_runs(model, tmp_path, method, changes, returns):
    folder = tmp_path / "run"
    changes = {"method": method, "updates": 1, "eval_tasks": 0, **changes}
    assert main(arguments(model, folder, **changes)) == 0
    (record,) = updates(folder)
    assert record["returns"] == 3 * returns
    assert record["live_snapshots"] == 0
    assert record["mismatch"] < 1e-4


# Stopping and going on


def interrupted(monkeypatch, after: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Let a signal arrive during update `after` of the runs to come."""
    update = Trainer.update

    def interrupt(trainer: Trainer):
        if trainer.learner.updates == after:
            os.kill(os.getpid(), number)
        return update(trainer)

    monkeypatch.setattr(Trainer, "update", interrupt)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(ran, model, tmp_path, monkeypatch, capsys, number):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupted(patch, 0, number)
        assert main(arguments(model, folder)) == STOPPED
    said = " ".join(capsys.readouterr().out.split())
    assert f"stopped by {number.name} after update 1" in said
    assert not (folder / "summary.json").exists()
    assert main(["--resume", str(folder)]) == 0
    assert updates(folder) == updates(ran)
    assert same_weights(folder, ran)
    one, other = (read(f / "summary.json") for f in (ran, folder))
    assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_baselines_and_quantiles_go_on_too(model, tmp_path, monkeypatch):
    # bpo-corrected remembers a value for each task, entropy-threshold the entropies of earlier batches
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    changes = {"method": "bpo-corrected", "branch_points": 2, "updates": 3, "eval_tasks": 0}
    assert main(arguments(model, whole, **changes)) == 0
    with monkeypatch.context() as patch:
        interrupted(patch, 1)
        assert main(arguments(model, parts, **changes)) == STOPPED
    state = read(parts / "checkpoint" / "trainer.json")
    assert state["credit"]["running"]
    assert state["schedule"]["entropies"]
    assert main(["--resume", str(parts)]) == 0
    assert updates(parts) == updates(whole)
    assert same_weights(parts, whole)


def test_what_was_done_after_the_last_checkpoint_is_done_again(ran, model, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    class Killed(Exception):
        pass

    def kill(trainer: Trainer) -> None:
        if trainer.learner.updates == 1:
            raise Killed
        save(trainer)

    save = Trainer.save
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", kill)  # as if killed before the first update's checkpoint is written
        with pytest.raises(Killed):
            main(arguments(model, folder))
    assert len(updates(folder)) == 1
    assert main(["--resume", str(folder)]) == 0
    assert updates(folder) == updates(ran)
    assert same_weights(folder, ran)


def test_a_finished_run_can_be_resumed_for_nothing(ran, model, tmp_path):
    folder = tmp_path / "run"
    assert main(arguments(model, folder, eval_tasks=0)) == 0
    before = updates(folder)
    assert main(["--resume", str(folder)]) == 0
    assert updates(folder) == before


def test_damaged_weights_are_not_gone_on_from(model, tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(arguments(model, folder, updates=1, eval_tasks=0)) == 0
    weights = folder / "checkpoint" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-500])
    assert main(["--resume", str(folder)]) == 1
    assert "model.safetensors is missing or damaged" in capsys.readouterr().err


def test_the_checkpoint_of_another_run_is_not_gone_on_from(model, tmp_path, capsys):
    for name in ("one", "other"):
        assert main(arguments(model, tmp_path / name, updates=1, eval_tasks=0)) == 0
    shutil.rmtree(tmp_path / "one" / "checkpoint")
    shutil.copytree(tmp_path / "other" / "checkpoint", tmp_path / "one" / "checkpoint")
    assert main(["--resume", str(tmp_path / "one")]) == 1
    assert "was written by another run" in capsys.readouterr().err


def test_a_full_disk_ends_the_run_with_a_word_and_can_be_gone_on_from(
    ran, model, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "run"
    append = RunFolder.append

    def full(run: RunFolder, name: str, record):
        if record.get("update") == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(run, name, record)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "append", full)
        assert main(arguments(model, folder)) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert main(["--resume", str(folder)]) == 0
    assert updates(folder) == updates(ran)


def test_resuming_needs_a_run(tmp_path, capsys):
    assert main(["--resume", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_resuming_takes_no_other_options(ran, capsys):
    assert main(["--resume", str(ran), "--seed", "3"]) == 2
    assert "takes no further options" in capsys.readouterr().err


# Refusals, before anything is written


def test_a_taken_folder_is_refused_untouched(ran, model, capsys):
    before = {path: path.stat().st_mtime_ns for path in ran.rglob("*")}
    assert main(arguments(model, ran)) == 2
    assert "holds a run already; choose another --output" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in ran.rglob("*")} == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"env": "bpo/Nowhere-v0"}, "cannot make 'bpo/Nowhere-v0'"),
        ({"train_split": "exam"}, "exam"),
        ({"model": "nowhere"}, "no folder 'nowhere'"),
        ({"model": ""}, "no model is named"),
        ({"method": "ppo"}, "unknown method 'ppo'"),
        ({"schedule": "often"}, "no schedule is called 'often'"),
        ({"eval_tasks": 501}, "has 500 tasks"),
        ({"temperature": 0}, "temperature is 0.0"),
        ({"top_p": 0.9}, "leave them to eval"),
        ({"top_k": 5}, "leave them to eval"),
        ({"returns": 4, "branch_points": 2}, "no K makes N = 4 returns with M = 2"),
        ({"max_new_tokens": 2000, "context_limit": 4000}, "the model's window holds 1024"),
        ({"format": "chat"}, "no chat template"),
        ({"first_template": "{task}"}, "unknown field"),
        ({"device": "abacus"}, "abacus"),
    ],
    ids=str,
)
def test_options_that_cannot_work_are_refused_and_nothing_is_written(model, tmp_path, capsys, changes, says):
    folder = tmp_path / "run"
    assert main(arguments(changes.pop("model", model), folder, **changes)) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_command_is_named(capsys):
    assert main(["trian"]) == 2
    assert "unknown command 'trian'; expected one of train, sft, eval" in capsys.readouterr().err


# From nothing


def test_a_run_from_scratch_keeps_its_start_and_can_be_resumed(model, tmp_path, monkeypatch):
    stages = '[{"rows": "episodes", "steps": 2, "batch": 2, "episodes": 6}]'
    folder = tmp_path / "run"
    scratch = {
        "from_scratch": True,
        "stages": stages,
        "expert": "bpo_envs.webshop.expert:NoisyExpert",
        "tokenizer_episodes": 6,
        "hidden_size": 16,
        "layers": 1,
        "heads": 4,
        "eval_tasks": 0,
        "vocabulary": 300,
        "seed": 2,
    }
    with monkeypatch.context() as patch:
        interrupted(patch, 0)
        assert main(arguments("", folder, **scratch)) == STOPPED
    load_policy(str(folder / "start"), FormatOptions())
    assert main(["--resume", str(folder)]) == 0
    assert main(arguments("", tmp_path / "whole", **scratch)) == 0
    assert updates(folder) == updates(tmp_path / "whole")


def test_a_policy_is_made_by_imitation_and_not_over_another(tmp_path, capsys):
    wanted = {
        "stages": '[{"rows": "first", "steps": 1, "batch": 1, "episodes": 2}]',
        "expert": "bpo_envs.webshop.expert:NoisyExpert",
        "tokenizer_episodes": 2,
        "hidden_size": 16,
        "layers": 1,
        "heads": 4,
        "vocabulary": 300,
    }
    assert main(["sft", *arguments("", tmp_path / "policy", **wanted)]) == 0
    load_policy(str(tmp_path / "policy"), FormatOptions())
    assert main(["sft", *arguments("", tmp_path / "policy", **wanted)]) == 2
    assert "exists; choose another --output" in capsys.readouterr().err
