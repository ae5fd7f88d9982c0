"""The policy: model, tokenizer and prompt format."""

from .format import FormatOptions, PromptFormat, make_format
from .model import Policy, TinyModel, load_policy, new_policy, train_tokenizer

__all__ = [
    "FormatOptions",
    "Policy",
    "PromptFormat",
    "TinyModel",
    "load_policy",
    "make_format",
    "new_policy",
    "train_tokenizer",
]
