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

_PACKAGES = ("bpo-envs", "torch", "transformers", "tokenizers", "safetensors", "gymnasium", "numpy")


class RunFolder:
    """Writes a run's files; whole or not at all, where a reader could see half a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._writer: SummaryWriter | None = None

    @classmethod
    def create(cls, output: Path | None, name: str) -> RunFolder:
        """A new folder.

        Raises:
            FileExistsError: `output` holds a run already; nothing in it is touched.
        """
        folder = output or Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
        if (folder / "manifest.json").exists():
            raise FileExistsError(f"{folder} holds a run already; choose another --output, or remove it")
        return cls(folder)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a JSON file in one step."""
        target = self.path / name
        draft = target.with_suffix(".partial")
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(target)

    def log(self, update: int, metrics: Mapping[str, float]) -> None:
        """Append one update's metrics."""
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"update": update, **metrics}) + "\n")
        if self._writer is None:
            self._writer = SummaryWriter(str(self.path / "tensorboard"))
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, update)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


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
