"""What the documents say works: Python blocks run, commands and their options exist.

The Python blocks of a document run one after another in one namespace. In ``bash`` blocks every
``python -m module ...`` is asked for ``--help``, where its options must appear; a block opened with
``bash run`` is executed.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BASH_BLOCK = re.compile(r"^```bash(?P<run> run)?\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|\s)(?:\.venv/bin/)?python3? -m (?P<words>[^#|&;>\n]+)", re.MULTILINE)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path, monkeypatch):
    """What a block writes stays out of the checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@each_document
def test_python_blocks_run(document):
    for example in Sybil([PythonCodeBlockParser()], pattern="*.md").parse(document).examples():
        example.evaluate()


def command_lines(document: Path) -> set[str]:
    """Every ``module arguments ...`` of the document's bash blocks, continuation lines joined."""
    blocks = BASH_BLOCK.finditer(document.read_text(encoding="utf-8"))
    code = "\n".join(block["code"] for block in blocks).replace("\\\n", " ")
    return {match["words"].strip() for match in COMMAND.finditer(code)}


@each_document
def test_commands_and_their_options_exist(document):
    for line in sorted(command_lines(document)):
        words = shlex.split(line)
        options = [word.split("=")[0] for word in words if word.startswith("-")]
        commands = words[: next((i for i, word in enumerate(words) if word.startswith("-")), len(words))]
        run = subprocess.run(
            [sys.executable, "-m", *commands, "--help"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"python -m {line}\n{run.stderr}"
        missing = [option for option in options if option not in run.stdout]
        assert not missing, f"python -m {line}: --help knows no {missing}"


@each_document
def test_blocks_to_run_succeed(document):
    for block in BASH_BLOCK.finditer(document.read_text(encoding="utf-8")):
        if block["run"]:
            run = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block["code"]], capture_output=True, text=True
            )
            assert run.returncode == 0, f"{block['code']}\n{run.stdout}{run.stderr}"


def test_python_blocks_of_a_document_share_a_namespace_and_fail_where_wrong(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError):
        test_python_blocks_run(document)


def test_commands_are_found_in_bash_blocks(tmp_path):
    document = tmp_path / "page.md"
    document.write_text(
        "```bash\n.venv/bin/python -m json.tool --indent 2 \\\n  --sort-keys   # tidy\nmake run\n```\n"
        "python -m nothing\n"
    )
    assert {" ".join(line.split()) for line in command_lines(document)} == {
        "json.tool --indent 2 --sort-keys"
    }
    test_commands_and_their_options_exist(document)
    document.write_text("```bash\npython -m json.tool --shiny\n```\n")
    with pytest.raises(AssertionError, match="--shiny"):
        test_commands_and_their_options_exist(document)
