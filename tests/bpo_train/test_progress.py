"""What a person sees: a line an update, and tables whose numbers are sums, peaks and shares."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bpo_train.progress import Display, accounts_table, summary_table

RECORD = {
    "success": 0.25,
    "score": 0.5,
    "entropy": 1.234,
    "nondegenerate_steps": 0.31,
    "tokens_per_second": 12345.6,
    "loss": 3.0,
}


def shown(table) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    return console.file.getvalue()


def cells(table) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    rows = zip(*(list(column.cells) for column in table.columns))
    return {str(first).strip(): [str(cell) for cell in rest] for first, *rest in rows}


def test_without_a_terminal_an_update_is_a_line():
    console = Console(file=io.StringIO())
    with Display(40, "training", console) as display:
        display.update(3, RECORD)
        display.note("a note")
    assert console.file.getvalue().splitlines() == [
        "training 3/40  success 0.25  score 0.50  H 1.23  non-degenerate 31%  12,346 tok/s",
        "a note",
    ]


def test_on_a_terminal_there_is_a_bar_with_time_to_go():
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    with Display(40, "training", console) as display:
        display.update(3, RECORD)
    said = console.file.getvalue()
    for part in ("3/40", "success 0.25", "ETA", "12,346 tok/s"):
        assert part in said


def test_the_summary_names_the_interval():
    found = {"success": 0.1, "greedy_success": 0.2, "score": 0.3, "n": 300}
    summary = {"start": found, "end": found, "difference": {"mean": 0.25, "low": 0.2, "high": 0.301}}
    table = summary_table(summary)
    assert cells(table)["success, greedy"] == ["0.200", "0.200"]
    said = " ".join(shown(table).split())
    assert "300 tasks" in said
    assert "+25.0 points" in said
    assert "95 % interval +20.0 to +30.1, paired by task" in said


@pytest.fixture
def accounts():
    record = {
        "returns": 7,
        "generated_tokens": 100,
        "forwarded_tokens": 700,
        "learned_tokens": 600,
        "stored_tokens": 300,
        "row_tokens": 900,
        "environment_steps": 20,
        "snapshots": 5,
        "restores": 6,
        "peak_live_snapshots": 5,
        "peak_snapshot_bytes": 1000,
        "live_snapshots": 0,
        "seconds": 2.0,
        "generate_seconds": 1.0,
        "environment_seconds": 0.25,
        "snapshot_seconds": 0.0,
        "restore_seconds": 0.0,
        "credit_seconds": 0.0,
        "learn_seconds": 0.5,
    }
    return accounts_table([record, {"update": 0, "eval_success": 0.5}, {**record, "peak_live_snapshots": 9}])


@pytest.mark.parametrize(
    ("label", "row"),
    [
        ("realised returns", ["14", "7"]),
        ("tokens as rows", ["1,800", "900"]),
        ("live snapshots, peak", ["9", ""]),
        ("seconds", ["4.0", "2.00"]),
        ("generating", ["2.0", "50.0%"]),
        ("learning", ["1.0", "25.0%"]),
        ("other", ["0.5", "12.5%"]),
    ],
)
def test_accounts_add_up(accounts, label, row):
    assert cells(accounts)[label] == row


def test_a_run_without_updates_has_accounts_too():
    assert cells(accounts_table([]))["realised returns"] == ["0", "0"]
