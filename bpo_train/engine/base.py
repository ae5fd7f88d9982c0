"""The engine seam: token ids in, token ids out, with log-probabilities and entropies.

An engine knows nothing of environments or trees. It is handed whole contexts, may reuse the `cache` that an
earlier completion returned for a prefix of that context, and never re-tokenises anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw tokens. Training uses plain temperature sampling: what is drawn is what is learned from.

    Attributes:
        temperature: logits are divided by it, for drawing, log-probs and entropies alike; > 0.
        greedy: take the most probable token instead of drawing.
        max_new_tokens: at most this many tokens an action, its end included.
        stop_ids: an action ends with the first of these tokens.
        top_k, top_p: draw from the k most probable tokens (0: all), and of these from the fewest that hold
            the probability p. For evaluation only: reported log-probs are of the whole distribution, so what
            is drawn this way cannot be learned from.
    """

    stop_ids: frozenset[int]
    max_new_tokens: int
    temperature: float = 1.0
    greedy: bool = False
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                f"top_k={self.top_k}, top_p={self.top_p}; expected k >= 0 and p above 0, at most 1"
            )
        if not self.temperature > 0:
            raise ValueError(
                f"temperature is {self.temperature}; it must be > 0 (use greedy=True for argmax)"
            )
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {self.max_new_tokens}; it must be at least 1")


@dataclass(slots=True)
class Request:
    """One continuation to generate.

    Attributes:
        tokens: the whole context.
        key: counter of the random stream; the same key draws the same uniforms in any batch.
        cache: a completion's cache that covers a prefix of `tokens` (it may cover more than wanted: it is
            cut).
    """

    tokens: list[int]
    key: tuple[int, ...]
    cache: Any | None = None


@dataclass(slots=True)
class Completion:
    """What was generated.

    Attributes:
        tokens: generated ids, the stop token included.
        logprobs: log-probability of each token at the sampling temperature.
        entropies: entropy in nats of each token's distribution over the full vocabulary, before it was drawn;
            None where the engine cannot tell.
        stopped: False when the token limit ended it.
        version: the weight version it was generated with.
        cache: covers the context and all but the last generated token; may be shared by any number of
            requests.
    """

    tokens: list[int]
    logprobs: list[float]
    entropies: list[float] | None
    stopped: bool
    version: int
    cache: Any | None = field(default=None, repr=False)


class Engine(Protocol):
    """Generates continuations under one weight version at a time.

    Attributes:
        version: of the weights.
        forwarded_tokens: tokens run through the model so far, padding not counted.
    """

    version: int
    forwarded_tokens: int

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Continue every request; completions come in the order of the requests.

        Raises:
            ValueError: a request is empty or longer than the model's window, or its cache is of an older
            version.
        """
        ...

    def score(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[list[int]]], temperature: float
    ) -> list[list[float]]:
        """Log-probability of each given continuation of each request's context, summed over its tokens.

        Raises:
            ValueError: as `generate`, or an empty continuation.
        """
        ...

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Take new weights by parameter name; all caches of older versions become invalid."""
        ...


def uniforms(key: tuple[int, ...], count: int) -> np.ndarray:
    """`count` uniform draws on [0, 1) that depend on `key` alone: float64[count]."""
    return np.random.default_rng(np.random.SeedSequence(key)).random(count)
