"""Checkpoints: the policy as a Hugging Face folder with the trainer's state in it, replaced in one step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from .policy import Policy

FORMAT = 1


def save_checkpoint(folder: Path, policy: Policy, state: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Write a checkpoint; an older one stays whole until the new one is.

    Args:
        folder: gets the policy's files, `trainer.json` and `trainer.pt`.
        policy: model and tokenizer.
        state: plain JSON data (counters, baselines, quantiles).
        tensors: state of the optimiser and of generators.
    """
    draft, old = folder.with_name(folder.name + ".partial"), folder.with_name(folder.name + ".old")
    shutil.rmtree(draft, ignore_errors=True)
    policy.save(draft)
    (draft / "trainer.json").write_text(json.dumps({"format": FORMAT, **state}))
    torch.save(tensors, draft / "trainer.pt")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.replace(old)
    draft.replace(folder)
    shutil.rmtree(old, ignore_errors=True)
