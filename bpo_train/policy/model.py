"""The policy: a causal language model, its tokenizer and its prompt format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

from bpo_envs.assets import asset

from . import smollm2
from .format import FormatOptions, PromptFormat, make_format
from .lora import adapter_base, load_adapter, save_adapter

logging.disable_progress_bar()  # a policy loads in a second; progress is shown by the run

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass
class Policy:
    """A model that acts: weights, tokenizer, prompt format. An adapted model is a `peft.PeftModel`."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    format: PromptFormat

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder: safetensors weights, configuration, tokenizer.

        Of a model with a LoRA adapter the adapter alone is written.
        """
        if isinstance(self.model, PreTrainedModel):
            self.model.save_pretrained(folder, safe_serialization=True)
        else:
            save_adapter(self.model, folder)
        self.tokenizer.save_pretrained(folder)


def load_policy(name: str, options: FormatOptions, dtype: str = "float32", device: str = "cpu") -> Policy:
    """Load a model by folder, by hub id, as "smollm2", or as "asset:FOLDER" for one that ships.

    Weights are read from safetensors only, and no remote code runs. A folder that holds a LoRA adapter gives
    the model it belongs to with the adapter merged in.

    Raises:
        ValueError: no name, an unknown dtype or device, a folder without weights in safetensors, or one that
        cannot be read.
    """
    if dtype not in DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}; expected one of {sorted(DTYPES)}")
    name = _place(name)
    folder = Path(name)
    if base := adapter_base(folder):
        policy = load_policy(base, options, dtype, device)
        return Policy(load_adapter(policy.model, folder).merge_and_unload(), policy.tokenizer, policy.format)
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        raise ValueError(
            f"{name!r} holds no *.safetensors; weights in other formats are not loaded (they can run code)"
        )
    if not folder.is_dir() and name.count("/") != 1:
        raise ValueError(f"no folder {name!r}, and it is no hub id of the form owner/name")
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            name,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=DTYPES[dtype],
            attn_implementation="sdpa",
        )
    except (OSError, ValueError, SafetensorError) as error:  # no such model, no network, a damaged file
        raise ValueError(f"cannot load the policy {name!r}: {error}") from error
    for tensor in model.parameters():
        # Tensors mapped from the file lie at any address, and a CPU's sums depend on the address in the last
        # digit: with storage of their own a resumed run repeats its numbers exactly.
        tensor.data = tensor.data.clone()
    to_device(model, device)
    return Policy(model, tokenizer, make_format(tokenizer, options))


def to_device(model: torch.nn.Module, device: str) -> None:
    """Move a model.

    Raises:
        ValueError: there is no such device.
    """
    try:
        torch.nn.Module.to(model, device)
    except (RuntimeError, AssertionError) as error:  # what torch raises for a device that is not there
        raise ValueError(f"cannot put the policy on the device {device!r}: {error}") from error


def _place(name: str) -> str:
    """The folder or hub id that a model's name stands for."""
    if not name:
        raise ValueError(
            "no model is named: give a folder, a hub id (owner/name), smollm2, or asset:FOLDER for one that "
            "ships"
        )
    if name == smollm2.NAME:
        return str(smollm2.smollm2_folder())
    kind, _, rest = name.partition(":")
    return str(asset(*rest.split("/"))) if kind == "asset" else name


@dataclass(frozen=True)
class TinyModel:
    """Size of a Llama that is made from nothing and learns on a CPU.

    The spread of the initial weights matters: at transformers' default of 0.02 a model this narrow never
    learns to copy words of the instruction, at 0.06 it does within a minute.

    Attributes:
        hidden_size: width; the feed-forward layer is three times as wide.
        layers: number of layers.
        heads: attention heads.
        kv_heads: heads of keys and values (grouped-query attention).
        window: longest context, in tokens.
        vocabulary: tokens of the tokenizer that is trained with it.
        initial_spread: standard deviation of the initial weights.
    """

    hidden_size: int = 192
    layers: int = 2
    heads: int = 6
    kv_heads: int = 2
    window: int = 2048
    vocabulary: int = 1500
    initial_spread: float = 0.06


def new_policy(
    tokenizer: PreTrainedTokenizerBase, size: TinyModel, options: FormatOptions, seed: int
) -> Policy:
    """A Llama with random weights that depend on `seed` alone."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden_size,
        intermediate_size=3 * size.hidden_size,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        head_dim=size.hidden_size // size.heads,
        max_position_embeddings=size.window,
        tie_word_embeddings=True,
        initializer_range=size.initial_spread,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.set_attn_implementation("sdpa")
    return Policy(model, tokenizer, make_format(tokenizer, options))


def train_tokenizer(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer: decoding gives back exactly what was encoded, whatever the text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")
