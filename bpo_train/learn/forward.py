"""Running a model over a batch: log-probabilities of the trained tokens in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from ..policy.attention import run_over_tree
from .packing import Batch


def hidden_states(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """The hidden state that predicts each trained token: float[A, hidden size].

    Raises:
        ValueError: the model cannot be run over a tree in one sequence.
    """
    inputs = {"input_ids": batch.tokens, "position_ids": batch.positions, "use_cache": False}
    if batch.spans is None:
        output = model.get_decoder()(**inputs)
    else:
        output = run_over_tree(model, batch.spans, **inputs)
    return output.last_hidden_state[batch.sequence, batch.predictors]


def by_chunks(
    function: Callable[..., tuple[torch.Tensor, ...]], rows: tuple[torch.Tensor, ...], size: int
) -> tuple[torch.Tensor, ...]:
    """Apply `function` to `size` rows at a time and join its outputs.

    A full-vocabulary table of log-probs then exists for one chunk only: in the backward pass it is computed
    again. Rows that fit into one chunk are kept.
    """
    if len(rows[0]) <= size:
        return function(*rows)
    outputs = []
    for start in range(0, len(rows[0]), size):
        chunk = tuple(row[start : start + size] for row in rows)
        outputs.append(checkpoint(function, *chunk, use_reentrant=False))
    return tuple(torch.cat(column) for column in zip(*outputs))


def token_logprobs(model: PreTrainedModel, batch: Batch, temperature: float, chunk: int) -> torch.Tensor:
    """Log-probability of every trained token at `temperature`: float32[A]."""
    head = model.get_output_embeddings()

    def chosen(hidden: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor]:
        logprobs = torch.log_softmax(head(hidden).float() / temperature, dim=-1)
        return (logprobs.gather(-1, ids[:, None])[:, 0],)

    return by_chunks(chosen, (hidden_states(model, batch), batch.target_ids), chunk)[0]


def token_logprobs_and_kl(
    model: PreTrainedModel,
    reference: PreTrainedModel,
    batch: Batch,
    temperature: float,
    chunk: int,
    kl: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of every trained token and its KL term against the reference: float32[A] each."""
    head, reference_head = model.get_output_embeddings(), reference.get_output_embeddings()
    with torch.no_grad():
        reference_hidden = hidden_states(reference, batch)

    def both(
        hidden: torch.Tensor, other: torch.Tensor, ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = torch.log_softmax(head(hidden).float() / temperature, dim=-1)
        with torch.no_grad():
            anchor = torch.log_softmax(reference_head(other).float() / temperature, dim=-1)
        return logprobs.gather(-1, ids[:, None])[:, 0], kl(logprobs, anchor, ids)

    logprobs, penalty = by_chunks(
        both, (hidden_states(model, batch), reference_hidden, batch.target_ids), chunk
    )
    return logprobs, penalty
