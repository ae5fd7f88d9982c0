"""The command `eval`: any actor on any split, with intervals, compared task by task."""

from __future__ import annotations

import io
import json

import pytest

from bpo_train.__main__ import main
from bpo_train.evaluate import mean_interval, paired_difference
from small_run import arguments, random_policy

EXPERT = {"policy": "expert", "expert": "bpo_envs.webshop.expert:NoisyExpert", "max_episode_steps": 12}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    random_policy().save(folder)
    return folder


def evaluated(model, output, **changes) -> dict:
    assert main(["eval", *arguments(model, output, **{"eval_tasks": 6, **changes})]) == 0
    return json.loads(output.read_text())


def test_a_model_is_evaluated_sampled_and_greedy(model, tmp_path):
    found = evaluated(model, tmp_path / "result.json")
    assert found["modes"].keys() == {"sampled", "greedy"}
    assert len(found["tasks"]) == 6
    for report in found["modes"].values():
        outcomes = report["outcomes"]
        assert report["success"] == mean_interval(outcomes["won"])
        assert report["score"] == mean_interval(outcomes["score"])
        assert report["n"] == 6
        assert "difference" not in report


def test_an_evaluation_repeats_itself(model, tmp_path):
    one, other = (evaluated(model, tmp_path / f"{n}.json") for n in (1, 2))
    assert one == other


def test_the_expert_is_evaluated_on_the_same_tasks(model, tmp_path):
    found = evaluated(model, tmp_path / "expert.json", eval_tasks=40, **EXPERT)
    assert found["policy"] == "expert"
    assert found["modes"]["expert"]["success"]["mean"] > 0.8
    assert found["modes"]["expert"]["decisions"] > 2


def test_differences_are_paired_by_task(model, tmp_path):
    earlier = evaluated(model, tmp_path / "earlier.json", modes="sampled")
    later = evaluated(
        model, tmp_path / "later.json", seed=1, compare=tmp_path / "earlier.json", modes="sampled"
    )
    before, after = (result["modes"]["sampled"]["outcomes"]["score"] for result in (earlier, later))
    assert later["modes"]["sampled"]["difference"]["score"] == paired_difference(before, after)


def test_other_tasks_cannot_be_compared(model, tmp_path, capsys):
    evaluated(model, tmp_path / "earlier.json")
    wrong = arguments(model, tmp_path / "x.json", compare=tmp_path / "earlier.json", eval_tasks=5)
    assert main(["eval", *wrong]) == 2
    assert "was made on other tasks" in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()


def test_a_result_is_not_written_over_another(model, tmp_path, capsys):
    (tmp_path / "taken.json").write_text("mine")
    assert main(["eval", *arguments(model, tmp_path / "taken.json")]) == 2
    assert "exists; choose another --output" in capsys.readouterr().err
    assert (tmp_path / "taken.json").read_text() == "mine"


def test_a_person_can_play(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("search lamp\nopen 1\nbuy\n" * 2))
    found = evaluated(model, tmp_path / "human.json", policy="human", eval_tasks=2)
    assert found["modes"]["human"]["decisions"] == 3
    said = capsys.readouterr().out
    assert "task: find me button tufted sofa beds" in said
    assert "results:" in said


def test_input_that_ends_early_writes_nothing(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("search lamp\n"))
    wanted = arguments(model, tmp_path / "human.json", policy="human", eval_tasks=2)
    assert main(["eval", *wanted]) == 2
    assert "the input ended before the episode did" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"eval_tasks": 0}, "expected 2 to 500"),
        ({"eval_tasks": 501}, "expected 2 to 500"),
        ({"policy": "expert"}, "no `expert` is configured"),
        ({"compare": "nowhere.json"}, "no result of an earlier eval"),
    ],
    ids=str,
)
def test_what_cannot_be_evaluated_is_refused(model, tmp_path, capsys, changes, says):
    assert main(["eval", *arguments(model, tmp_path / "x.json", **changes)]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_expert_is_paired_with_an_evaluation_of_the_model(model, tmp_path):
    first = evaluated(model, tmp_path / "model.json")
    second = evaluated(model, tmp_path / "expert.json", compare=tmp_path / "model.json", **EXPERT)
    before = first["modes"]["sampled"]["outcomes"]["won"]
    report = second["modes"]["expert"]
    assert report["difference"]["success"] == paired_difference(before, report["outcomes"]["won"])
