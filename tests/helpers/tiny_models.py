"""Language models and tokenizers small enough to build in a test, of the families that are used."""

from __future__ import annotations

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from bpo_train.policy import train_tokenizer

torch.set_num_threads(1)

MODELS = ("llama-tied", "llama-untied", "qwen2-tied", "qwen2-untied")
"""Grouped-query attention in all of them; Qwen2 has biases."""

VOCABULARY = 48

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{{ '<|begin|>' }}{% for m in messages %}<|head|>{{ m.role }}<|/head|>\n\n{{ m.content | trim }}<|eot|>"
    "{% endfor %}{% if add_generation_prompt %}<|head|>assistant<|/head|>\n\n{% endif %}"
)
"""The two shapes that chat templates have: a newline behind the end of a turn, or nothing."""


def tiny_model(
    kind: str = "llama-tied", vocabulary: int = VOCABULARY, window: int = 256, seed: int = 0, **settings
) -> PreTrainedModel:
    """A random float32 model, 2 layers, 4 heads over 2 of keys and values; sharp enough to have opinions."""
    family, tying = kind.split("-")
    config_class, model_class = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    }[family]
    config = config_class(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        tie_word_embeddings=tying == "tied",
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
        **settings,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(config)
    model.set_attn_implementation("sdpa")
    return model.eval()


def tiny_tokenizer(texts: tuple[str, ...] = ("search red shoes\nbuy\n",) * 4) -> PreTrainedTokenizerFast:
    """Byte-level, some merges."""
    return train_tokenizer(list(texts), 300)


def chat_tokenizer(template: str) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with one of the chat templates above and its end-of-turn token."""
    tokenizer = tiny_tokenizer()
    marks = ["<|im_start|>", "<|im_end|>", "<|begin|>", "<|head|>", "<|/head|>", "<|eot|>"]
    tokenizer.add_special_tokens(
        {
            "additional_special_tokens": marks,
            "eos_token": "<|im_end|>" if template == CHATML else "<|eot|>",
        }
    )
    tokenizer.chat_template = template
    return tokenizer
