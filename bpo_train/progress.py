"""What a person sees while a run goes on: a progress bar on a terminal, a line an update elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

SHOWN = {
    "success": "success {:.2f}",
    "score": "score {:.2f}",
    "entropy": "H {:.2f}",
    "nondegenerate_steps": "non-degenerate {:.0%}",
    "tokens_per_second": "{:,.0f} tok/s",
}
"""Metrics that are shown, and how."""


class Display:
    """A progress bar with ETA and the latest metrics; without a terminal, plain lines."""

    def __init__(self, total: int, what: str, console: Console | None = None) -> None:
        self.console = console or Console()
        self._total = total
        self._what = what
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._progress.add_task(what, total=total, shown="")

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        """Show that `done` of the total is done."""
        shown = "  ".join(form.format(metrics[name]) for name, form in SHOWN.items() if name in metrics)
        self._progress.update(self._task, completed=done, shown=shown)
        if not self.console.is_terminal:
            self.console.print(f"{self._what} {done}/{self._total}  {shown}", soft_wrap=True, highlight=False)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, soft_wrap=True, highlight=False)


_STAGES = {
    "generate_seconds": "generating",
    "environment_seconds": "environment steps",
    "snapshot_seconds": "snapshots",
    "restore_seconds": "restores",
    "credit_seconds": "credit",
    "learn_seconds": "learning",
}
_COUNTS = {
    "returns": "realised returns",
    "generated_tokens": "generated tokens",
    "forwarded_tokens": "tokens forwarded to generate",
    "learned_tokens": "tokens forwarded to learn",
    "stored_tokens": "tokens, each stored once",
    "row_tokens": "tokens as rows",
    "environment_steps": "environment steps",
    "snapshots": "snapshots taken",
    "restores": "restores",
}
_PEAKS = {
    "peak_live_snapshots": "live snapshots, peak",
    "peak_snapshot_bytes": "their bytes, peak",
    "live_snapshots": "live snapshots after an update, peak",
}


def accounts_table(records: Sequence[Mapping[str, float]]) -> Table:
    """What the updates of a run cost, from their records: sums, peaks, and each stage's share of the time."""
    updates = [record for record in records if "returns" in record]
    table = Table(title=f"{len(updates)} updates")
    table.add_column("")
    table.add_column("in all", justify="right")
    table.add_column("an update", justify="right")
    for name, label in _COUNTS.items():
        total = sum(record[name] for record in updates)
        table.add_row(label, f"{total:,.0f}", f"{total / max(1, len(updates)):,.0f}")
    for name, label in _PEAKS.items():
        table.add_row(label, f"{max((record[name] for record in updates), default=0):,.0f}", "")
    seconds = sum(record["seconds"] for record in updates)
    stages = {label: sum(record[name] for record in updates) for name, label in _STAGES.items()}
    stages["other"] = seconds - sum(stages.values())
    table.add_section()
    table.add_row("seconds", f"{seconds:,.1f}", f"{seconds / max(1, len(updates)):,.2f}")
    for label, spent in stages.items():
        table.add_row(f"  {label}", f"{spent:,.1f}", f"{spent / max(seconds, 1e-9):.1%}")
    return table


def summary_table(summary: Mapping[str, Mapping[str, float]]) -> Table:
    """The evaluation before and after as a table."""
    start, end, difference = summary["start"], summary["end"], summary["difference"]
    table = Table(title=f"evaluation on {start['n']} tasks")
    for column in ("", "before", "after"):
        table.add_column(column, justify="left" if not column else "right")
    for key, label in (
        ("success", "success, sampled"),
        ("greedy_success", "success, greedy"),
        ("score", "score, sampled"),
    ):
        table.add_row(label, f"{start[key]:.3f}", f"{end[key]:.3f}")
    low, high = difference["low"], difference["high"]
    table.caption = (
        f"sampled success changed by {100 * difference['mean']:+.1f} points "
        f"(95 % interval {100 * low:+.1f} to {100 * high:+.1f}, paired by task)"
    )
    return table
