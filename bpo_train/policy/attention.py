"""Attention over a packed tree, branch by branch.

A dense mask over a packed tree costs its whole length squared, most of it masked. Instead the tokens of each
branch attend to what they can see and to nothing else: the path before the branch, in full, and the branch
itself, causally. What is joined together for that is a copy of the path's keys and values.

Transformers knows it by the name `NAME`; without `spans` it is "sdpa" unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "sdpa_tree"
KNOWN = ("sdpa", NAME)
"""Attention implementations that do the same where no spans are given."""


@dataclass(frozen=True)
class Span:
    """A branch in a packed sequence. Spans follow each other and cover the sequence.

    Attributes:
        length: its tokens.
        before: the path that it continues, as (number of an earlier span, how many of its first tokens).
    """

    length: int
    before: tuple[tuple[int, int], ...] = ()

    @property
    def seen(self) -> int:
        """Tokens on the path before it."""
        return sum(count for _, count in self.before)


class Spans:
    """The spans of one forward pass, with their masks; counts the layers that made use of them."""

    def __init__(self, spans: Sequence[Span], device: torch.device) -> None:
        self.spans = spans
        self.lengths = [span.length for span in spans]
        self.layers = 0
        shapes = {(span.length, span.seen) for span in spans if span.before}
        self._masks = {
            (length, seen): torch.ones(length, seen + length, dtype=torch.bool, device=device).tril(seen)
            for length, seen in shapes
        }

    def mask(self, span: Span) -> torch.Tensor | None:
        """bool[1, 1, length, seen + length]; None where plain causal order is meant."""
        return self._masks[span.length, span.seen][None, None] if span.before else None


def run_over_tree(model: Any, spans: Spans, **inputs: Any) -> Any:
    """The output of the model's decoder, every token of which sees its own path.

    Args:
        model: one whose attention is "sdpa"; it is `NAME` from then on.
        spans: the branches of the packed sequence.
        inputs: `input_ids` and `position_ids`, long[1, L], and options of the decoder.

    Raises:
        ValueError: the model's attention is another one, or is not told of the spans.
    """
    config = model.config.get_text_config(decoder=True)
    if config._attn_implementation not in KNOWN:
        raise ValueError(
            f"the model's attention is {config._attn_implementation!r}; the tree layout needs "
            'model.set_attn_implementation("sdpa"), or use the layout "rows"'
        )
    config._attn_implementation = NAME
    before = spans.layers
    no_mask = torch.ones(1, 1, 1, 1, dtype=torch.bool)  # keeps transformers from making one
    output = model.get_decoder()(**inputs, attention_mask=no_mask, spans=spans)
    if spans.layers - before != config.num_hidden_layers:
        raise ValueError(
            f"{config.model_type} does not hand the arguments of its forward pass down to its attention; "
            'use the layout "rows"'
        )
    return output


def tree_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    spans: Spans | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """An attention function of transformers: takes float[1, heads, L, head size] thrice.

    Returns:
        float[1, L, heads, head size], and no attention weights.
    """
    if spans is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    spans.layers += 1
    queries, keys, values = (states.split(spans.lengths, dim=2) for states in (query, key, value))
    outputs = []
    for number, span in enumerate(spans.spans):
        path_keys, path_values = (
            torch.cat([*(parts[i][:, :, :count] for i, count in span.before), parts[number]], dim=2)
            for parts in (keys, values)
        )
        output, _ = sdpa_attention_forward(
            module, queries[number], path_keys, path_values, spans.mask(span), **options
        )
        outputs.append(output)
    return torch.cat(outputs, dim=1), None


AttentionInterface.register(NAME, tree_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
