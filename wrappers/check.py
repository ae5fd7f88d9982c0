"""``python -m wrappers.check ENV_ID``: does going back in this environment work?

Exit status 0: every check holds; 1: a check failed; 2: the environment could not be imported, made or reset.
Everything is explained in docs/snapshots.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from .fidelity import CHECKS, DEFAULT_IGNORE, CannotMake, CheckResult, check_fidelity
from .snapshot_env import STRATEGIES


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m wrappers.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("env_id", metavar="ENV_ID", help='environment id, or "module:id"')
    parser.add_argument(
        "--import",
        dest="modules",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this module first, for what it registers (may be given several times)",
    )
    parser.add_argument("--kwargs", type=_object, default={}, metavar="JSON", help="for gymnasium.make")
    parser.add_argument("--options", type=_object, metavar="JSON", help="given to every reset")
    parser.add_argument("--episodes", type=_positive, metavar="N", help="recorded episodes that are played")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first episode")
    parser.add_argument("--strategy", choices=STRATEGIES, default="auto", help="how snapshots are taken")
    parser.add_argument("--quick", action="store_true", help="seconds instead of up to a minute")
    parser.add_argument(
        "--check", dest="checks", action="append", choices=list(CHECKS), help="run this check only (or these)"
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATTERN",
        help='leave a field out of comparisons, for example "info.clock"; beside '
        + ", ".join(DEFAULT_IGNORE),
    )
    parser.add_argument(
        "--nondeterministic", action="store_true", help="answers are random by intent: compare distributions"
    )
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="for one check")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the report there")
    return parser


def _object(text: str) -> dict:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'expected a JSON object such as {{"size": 4}}, got {text!r}')
    return value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the self-check; returns the exit status."""
    given = parser().parse_args(arguments)
    sys.path.insert(0, "")  # `--import my_module` finds a module in the working directory
    try:
        report = check_fidelity(
            given.env_id,
            kwargs=given.kwargs,
            modules=given.modules,
            strategy=given.strategy,
            episodes=given.episodes,
            seed=given.seed,
            quick=given.quick,
            checks=given.checks,
            options=given.options,
            ignore=(*DEFAULT_IGNORE, *given.ignore),
            nondeterministic=True if given.nondeterministic else None,
            time_limit=given.time_limit,
            progress=_show,
        )
    except CannotMake as error:
        print(f"python -m wrappers.check: {error}", file=sys.stderr)
        return 2
    print(report)
    if given.json:
        given.json.write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
    return 0 if report.passed else 1


def _show(name: str, result: CheckResult | None) -> None:
    number = list(CHECKS).index(name) + 1
    if result is None:
        print(f"[{number:2}/{len(CHECKS)}] {name} ... ", end="", file=sys.stderr, flush=True)
    else:
        print(f"{result.status} ({result.seconds:.1f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
