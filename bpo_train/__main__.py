"""Commands: ``python -m bpo_train [train | sft | eval] [options]``; without a command, train.

``python -m bpo_train --resume FOLDER`` goes on with a run that was stopped or killed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from .config import Config

COMMANDS = ("train", "sft", "eval")
STOPPED = 130  # the exit status of a run that a signal stopped


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit status: 0 done, 2 options or input that cannot be used, 1 a disk or checkpoint that failed,
        130 stopped by a signal after a checkpoint.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    command = args.pop(0) if args and args[0] in COMMANDS else "train"
    if args and not args[0].startswith("-"):
        return _fail(f"unknown command {args[0]!r}; expected one of {', '.join(COMMANDS)}")
    from .checkpoint import CheckpointError  # torch comes with it: not for a mistyped command
    from .collect.environment import InputError

    try:
        run = {"train": _train, "sft": _sft, "eval": _eval}[command](args)
    except (ValueError, FileExistsError, FileNotFoundError) as error:
        return _fail(str(error))
    except CheckpointError as error:
        return _fail(str(error), status=1)
    try:
        return run()
    except FileExistsError as error:
        return _fail(str(error))
    except InputError as error:
        return _fail(str(error))
    except CheckpointError as error:
        return _fail(str(error), status=1)
    except OSError as error:  # a full disk, most likely; other errors are faults of the program
        return _fail(f"{error}; what was written is whole: make room and go on with --resume", status=1)


def _train(args: list[str]) -> Callable[[], int]:
    from .config import from_plain, parse
    from .manifest import RunFolder
    from .trainer import Trainer

    if args and args[0].startswith("--resume"):
        folder = Path(args[0].partition("=")[2] or (args[1] if len(args) > 1 else ""))
        if len(args) > (1 if "=" in args[0] else 2):
            raise ValueError("--resume FOLDER takes no further options: a run goes on as it was configured")
        config = from_plain(RunFolder.existing(folder).read_json("manifest.json")["config"])
        trainer = Trainer(_with_threads(config), resume=folder)
    else:
        trainer = Trainer(_with_threads(parse(args, "python -m bpo_train train")))
    return lambda: 0 if trainer.run() else STOPPED


def _sft(args: list[str]) -> Callable[[], int]:
    from .config import parse
    from .imitation import imitation_policy

    config = _with_threads(parse(args, "python -m bpo_train sft"))
    folder = config.run.output or Path("runs") / "sft"
    if folder.exists():
        raise FileExistsError(f"{folder} exists; choose another --output, or remove it")

    def make() -> int:
        console = Console()
        imitation_policy(config, console).save(folder)
        console.print(f"policy written to {folder}", highlight=False)
        return 0

    return make


def _eval(args: list[str]) -> Callable[[], int]:
    from .config import parse
    from .examine import examine
    from .manifest import write_json

    config = _with_threads(parse(args, "python -m bpo_train eval"))
    if config.run.output is not None and config.run.output.exists():
        raise FileExistsError(f"{config.run.output} exists; choose another --output, or remove it")
    console = Console()
    result = examine(config, console)
    if config.run.output is not None:
        config.run.output.parent.mkdir(parents=True, exist_ok=True)
        write_json(config.run.output, result)
        console.print(f"result written to {config.run.output}", highlight=False)
    return lambda: 0


def _with_threads(config: Config) -> Config:
    """Give torch the threads that were asked for; the configuration as it came."""
    import torch

    if config.run.threads:
        torch.set_num_threads(config.run.threads)
    return config


def _fail(message: str, status: int = 2) -> int:
    print(f"error: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
