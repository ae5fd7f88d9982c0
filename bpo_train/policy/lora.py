"""LoRA: train two thin matrices beside every linear layer and leave the model's own weights as they are.

With the adapter switched off the model is the one that the run started from, so the reference policy costs
no second copy.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

_CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class LoraOptions:
    """LoRA.

    Attributes:
        lora_rank: width of the adapters, at every linear layer but the head; 0 trains the model itself.
        lora_alpha: what an adapter adds is scaled by alpha / rank; twice the rank if not given.
    """

    lora_rank: int = 0
    lora_alpha: float | None = None

    def __post_init__(self) -> None:
        if self.lora_rank < 0:
            raise ValueError(f"lora_rank is {self.lora_rank}; expected 0 (no LoRA) or more")
        if self.lora_alpha is not None and not self.lora_alpha > 0:
            raise ValueError(f"lora_alpha is {self.lora_alpha}; expected a value above 0")


def add_adapter(model: PreTrainedModel, options: LoraOptions, base: str, seed: int) -> Any:
    """`model` with a fresh adapter, which changes nothing yet and alone is trained: a `peft.PeftModel`.

    Adapters are in float32 even where the model is not: small steps would be rounded away.

    Args:
        model: an ordinary model; its layers are changed in place.
        options: rank and scale.
        base: the model's name, kept with the adapter: where to find what it belongs to.
        seed: the adapter depends on it alone.

    Raises:
        ValueError: peft is not installed.
    """
    peft = _peft()
    config = peft.LoraConfig(
        r=options.lora_rank,
        lora_alpha=options.lora_alpha or 2 * options.lora_rank,
        lora_dropout=0.0,  # else the ratio of Eq 6 would differ from 1 under equal weights
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapted = peft.get_peft_model(model, config)
    config.base_model_name_or_path = str(Path(base).resolve()) if Path(base).is_dir() else base
    return adapted


def load_adapter(model: PreTrainedModel, folder: Path) -> Any:
    """`model` with the adapter in `folder`, to be trained on: a `peft.PeftModel`.

    Raises:
        ValueError: peft is not installed, or the adapter does not fit.
    """
    try:
        return _peft().PeftModel.from_pretrained(model, folder, is_trainable=True)
    except RuntimeError as error:  # tensors of another shape
        raise ValueError(f"the adapter in {folder} does not fit the model: {error}") from error


def save_adapter(model: Any, folder: Path) -> None:
    """Write the adapter, in PEFT's format; not the model's own weights."""
    # "auto" would ask the hub for the base model's vocabulary; it never changes here
    model.save_pretrained(folder, save_embedding_layers=False)


def adapter_base(folder: Path) -> str | None:
    """The name of the model that the adapter in `folder` belongs to; None where there is no adapter."""
    path = folder / _CONFIG
    return str(json.loads(path.read_text())["base_model_name_or_path"]) if path.is_file() else None


@dataclass(frozen=True)
class WithoutAdapter:
    """An adapted model with its adapter switched off: the reference policy, as a learner asks for one."""

    model: Any

    @property
    def config(self) -> Any:
        """The model's."""
        return self.model.config

    def get_decoder(self) -> Any:
        """Like the model's own: called with token ids, mask and positions."""
        return self._decode

    def get_output_embeddings(self) -> torch.nn.Module:
        """The head, which has no adapter."""
        return self.model.get_output_embeddings()  # type: ignore[no-any-return]

    def _decode(self, **inputs: Any) -> Any:
        with self.model.disable_adapter():
            return self.model.get_decoder()(**inputs)


def _peft() -> Any:
    if importlib.util.find_spec("peft") is None:
        raise ValueError("LoRA needs the package peft, which is not installed: pip install 'bpo-envs[lora]'")
    import peft  # only where it is used: it takes a second to import

    return peft
