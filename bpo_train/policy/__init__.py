"""The policy: model, tokenizer and prompt format."""

from .format import FormatOptions, PromptFormat, make_format
from .lora import LoraOptions, WithoutAdapter, add_adapter, load_adapter
from .model import DTYPES, Policy, TinyModel, load_policy, new_policy, to_device, train_tokenizer

__all__ = [
    "DTYPES",
    "FormatOptions",
    "LoraOptions",
    "Policy",
    "PromptFormat",
    "TinyModel",
    "WithoutAdapter",
    "add_adapter",
    "load_adapter",
    "load_policy",
    "make_format",
    "new_policy",
    "to_device",
    "train_tokenizer",
]
