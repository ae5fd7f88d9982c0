"""The run folder: what was asked, what happened, and what came out.

manifest.json   configuration, versions, panel digests, hardware, seeds: all that a repetition needs
metrics.jsonl   one line an update
tensorboard/    the same, for TensorBoard
checkpoint/     the policy as a Hugging Face folder, and the trainer's state
summary.json    the evaluation before and after
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter

_PACKAGES = ("bpo-envs", "torch", "transformers", "peft", "tokenizers", "safetensors", "gymnasium", "numpy")


class RunFolder:
    """Writes a run's files; whole or not at all, where a reader could see half a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._writer: SummaryWriter | None = None
        self._first: int | None = None  # TensorBoard hides what an interrupted run wrote from here on

    @classmethod
    def create(cls, output: Path | None, name: str) -> RunFolder:
        """A new folder.

        Raises:
            FileExistsError: `output` holds a run already; nothing in it is touched.
        """
        cls.check_free(output)
        return cls(output or Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}")

    @staticmethod
    def check_free(output: Path | None) -> None:
        """Raise FileExistsError if `output` holds a run already, one that got as far as its first records."""
        signs = ("checkpoint*", "metrics.jsonl", "summary.json")
        if output is not None and any(found for sign in signs for found in output.glob(sign)):
            raise FileExistsError(f"{output} holds a run already; choose another --output, or remove it")

    @classmethod
    def existing(cls, folder: Path) -> RunFolder:
        """The folder of an earlier run.

        Raises:
            ValueError: there is no run.
        """
        if not (folder / "manifest.json").is_file():
            raise ValueError(f"{folder} holds no run (no manifest.json); give the run folder to go on with")
        return cls(folder)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a JSON file in one step."""
        write_json(self.path / name, content)

    def read_json(self, name: str) -> Any:
        """Read a file that `write_json` wrote.

        Raises:
            ValueError: it is missing or damaged.
        """
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path / name} is missing or damaged: {error}") from error

    def forget_after(self, update: int) -> None:
        """Drop the records of later updates: a resumed run makes them again."""
        path = self.path / "metrics.jsonl"
        kept = (
            [line for line in path.read_text().splitlines() if _update_of(line) <= update]
            if path.exists()
            else []
        )
        draft = path.with_suffix(".partial")
        draft.write_text("".join(f"{line}\n" for line in kept))
        draft.replace(path)
        self._first = update + 1

    def log(self, update: int, metrics: Mapping[str, float]) -> None:
        """Append one update's metrics."""
        self.append("metrics.jsonl", {"update": update, **metrics})
        if self._writer is None:
            self._writer = SummaryWriter(str(self.path / "tensorboard"), purge_step=self._first)
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, update)

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Add one line of JSON to a file."""
        with (self.path / name).open("a") as file:
            file.write(json.dumps(record) + "\n")

    def metrics(self) -> list[dict[str, float]]:
        """All records of `log` so far, in order."""
        path = self.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def write_json(target: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, or replace it, in one step."""
    draft = target.with_suffix(".partial")
    draft.write_text(json.dumps(content, indent=2) + "\n")
    draft.replace(target)


def _update_of(line: str) -> float:
    """The update that a line of metrics is of; a line cut short counts as later than all."""
    try:
        return int(json.loads(line)["update"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def machine() -> dict[str, Any]:
    """Versions and hardware."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from a checkout that is not installed
            versions[package] = "not installed"
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "gpus": gpus,
        "torch_threads": torch.get_num_threads(),
        "packages": versions,
    }
