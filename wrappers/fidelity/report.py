"""What the self-check found: one result for each check, what snapshots cost, and what was left out."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any


@dataclass
class CheckResult:
    """The outcome of one check.

    passed: no violation was found; also True for a check that was skipped.
    skipped: the check says nothing about this environment; `detail` says why.
    detail: one or a few sentences: what was seen, or which step and field went wrong.
    reproduce: for a failure, the shortest way to see it: {"seed", "actions", "code", ...}; else None.
    """

    name: str
    passed: bool
    detail: str
    skipped: bool = False
    reproduce: dict[str, Any] | None = None
    seconds: float = 0.0

    @property
    def status(self) -> str:
        return "skipped" if self.skipped else "ok" if self.passed else "FAILED"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "passed": self.passed,
            "skipped": self.skipped,
            "detail": self.detail,
            "reproduce": self.reproduce,
            "seconds": round(self.seconds, 3),
        }


@dataclass
class FidelityReport:
    """The result of `check_fidelity`.

    cost: seconds and bytes by name (`fidelity/checks/cost.py`), empty where nothing can be captured.
    ignored: what was left out of comparisons: patterns, the normalization, objects without equality.
    """

    env: str
    capability: str
    checks: list[CheckResult]
    cost: dict[str, Any] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> list[CheckResult]:
        return [check for check in self.checks if not check.passed]

    def __getitem__(self, name: str) -> CheckResult:
        """The result of a check by its name. Raises KeyError for a check that was not run."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check {name!r} was run; there are {', '.join(c.name for c in self.checks)}")

    def to_json(self) -> dict[str, Any]:
        """Plain data, as `python -m wrappers.check --json` writes it."""
        return {
            "env": self.env,
            "passed": self.passed,
            "capability": self.capability,
            "checks": [check.to_json() for check in self.checks],
            "cost": self.cost,
            "ignored": self.ignored,
        }

    def __str__(self) -> str:
        seconds = sum(check.seconds for check in self.checks)
        ran = sum(not check.skipped for check in self.checks)
        verdict = "passed" if self.passed else f"FAILED {len(self.failures)} of"
        head = f"{self.env}: {verdict} {ran} checks in {seconds:.1f} s; capability {self.capability!r}"
        lines = [head, ""]
        for check in self.checks:
            lines += _row(check)
        for check in self.failures:
            if check.reproduce and check.reproduce.get("code"):
                lines += ["", f"{check.name}, to see it:"]
                lines += textwrap.indent(check.reproduce["code"], "    ").splitlines()
        if self.ignored:
            lines += ["", "not compared: " + ", ".join(self.ignored)]
        return "\n".join(lines)


def _row(check: CheckResult) -> list[str]:
    first, *rest = textwrap.wrap(check.detail, 84, break_long_words=False) or [""]
    return [f"{check.name:<16} {check.status:<8} {first}", *(" " * 26 + line for line in rest)]
