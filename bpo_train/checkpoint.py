"""Checkpoints: the policy as a Hugging Face folder with the trainer's state in it, replaced in one step.

A checkpoint is written beside the last one and then takes its place, so that one is whole at every moment.
It lists the sha256 of its files: a damaged one is refused instead of continued from.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .files import sha256
from .policy import Policy

FORMAT = 1
_STATE = "trainer.json"
_TENSORS = "trainer.pt"


class CheckpointError(Exception):
    """A checkpoint that cannot be written or read; the message says which, why, and what is safe."""


def save_checkpoint(
    folder: Path, policy: Policy, state: Mapping[str, Any], tensors: Mapping[str, Any]
) -> None:
    """Write a checkpoint; an older one stays whole until the new one is.

    Args:
        folder: gets the policy's files, `trainer.json` and `trainer.pt`.
        policy: model and tokenizer.
        state: plain JSON data (counters, baselines, quantiles).
        tensors: state of the optimiser and of generators.

    Raises:
        CheckpointError: the disk does not take it; the older checkpoint is untouched.
    """
    draft, old = _beside(folder, "partial"), _beside(folder, "old")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        policy.save(draft)
        torch.save(dict(tensors), draft / _TENSORS)
        sums = {path.name: sha256(path) for path in sorted(draft.iterdir())}
        (draft / _STATE).write_text(json.dumps({"format": FORMAT, "files": sums, **state}))
    except (OSError, RuntimeError) as error:  # torch and safetensors report a full disk as a RuntimeError
        shutil.rmtree(draft, ignore_errors=True)
        kept = f"; the checkpoint before it is whole: {folder}" if folder.exists() else ""
        raise CheckpointError(f"cannot write the checkpoint {folder}: {error}{kept}") from error
    if folder.exists():  # else a kill came between the renames, and `old` is the one whole checkpoint
        shutil.rmtree(old, ignore_errors=True)
        folder.replace(old)
    draft.replace(folder)
    shutil.rmtree(old, ignore_errors=True)


def find_checkpoint(folder: Path) -> Path:
    """The whole checkpoint at `folder`, or the older one if a kill came between the two renames.

    Raises:
        CheckpointError: there is none.
    """
    for place in (folder, _beside(folder, "old")):
        if (place / _STATE).is_file():
            return place
    raise CheckpointError(
        f"no checkpoint at {folder}; a run writes its first once its start has been evaluated"
    )


def load_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the trainer's state and tensors, all files checked.

    Raises:
        CheckpointError: a file is missing or damaged, or the checkpoint is of another format.
    """
    try:
        state = json.loads((folder / _STATE).read_text())
        form, sums = state.pop("format"), state.pop("files")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder / _STATE} is missing or damaged ({error})") from error
    if form != FORMAT:
        raise CheckpointError(f"{folder} is of checkpoint format {form!r}; this version reads {FORMAT}")
    for name, expected in sums.items():
        path = folder / name
        if not path.is_file() or sha256(path) != expected:
            raise CheckpointError(f"{path} is missing or damaged: its sha256 is not the one written with it")
    return state, torch.load(folder / _TENSORS, weights_only=True)


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(f"{folder.name}.{suffix}")
