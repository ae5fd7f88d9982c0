"""Commands: ``python -m bpo_train [train | sft] [options]``; without a command, train."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

COMMANDS = ("train", "sft")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status (0 done, 2 options or input that cannot be used)."""
    args = list(sys.argv[1:] if argv is None else argv)
    command = args.pop(0) if args and args[0] in COMMANDS else "train"
    if args and not args[0].startswith("-"):
        print(f"unknown command {args[0]!r}; expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    from .config import parse  # torch and transformers come with it: not for a mistyped command

    console = Console()
    try:
        config = parse(args, f"python -m bpo_train {command}")
        run: Callable[[], object]
        if command == "sft":
            from .imitation import imitation_policy

            folder = config.run.output or Path("runs") / "sft"

            def run() -> None:
                imitation_policy(config, console).save(folder)
                console.print(f"policy written to {folder}", highlight=False)
        else:
            from .trainer import Trainer

            run = Trainer(config, console).run
    except (ValueError, FileExistsError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
