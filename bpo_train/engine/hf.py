"""The default engine: a transformers model, batched generation, KV caches that fork.

The decoding loop is ours for three reasons: exact entropies over the full vocabulary, random numbers that
belong to the branch and not to the batch, and caches that siblings share.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from transformers import PreTrainedConfig

from ..policy import attention
from .base import Completion, Request, Sampling, uniforms
from .kv import BatchCache, Prefix

PREFILL_TOKENS = 8192
"""Padded tokens of contexts that are run together: bounds the memory that a forward pass takes."""


class HFEngine:
    """Generates with a transformers causal language model (Llama, Qwen2 and others with ordinary KV layers).

    The model is used as it is, not copied: a learner in the same process shares it and calls `refresh` after
    each update. `max_batch` rows are decoded together.

    Raises:
        ValueError: the model's attention, or what it does to its logits, is not what this engine relies on.
    """

    def __init__(self, model: torch.nn.Module, max_batch: int = 64) -> None:
        self.model = model
        self.version = 0
        self.forwarded_tokens = 0
        self.max_batch = max_batch
        config = model.config.get_text_config(decoder=True)  # type: ignore[operator, union-attr]
        _check_attention(config)
        self._layers = config.num_hidden_layers
        self._heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        self._head_size = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        self.window = int(config.max_position_embeddings)
        self._decoder = model.get_decoder()  # type: ignore[operator]
        self._head = model.get_output_embeddings()  # type: ignore[operator]
        # transformers renames the argument from past_key_values to cache during 5.x
        names = inspect.signature(self._decoder.forward).parameters
        self._cache_argument = "cache" if "cache" in names else "past_key_values"
        self._check_head(config.model_type)

    @torch.inference_mode()
    def _check_head(self, kind: str) -> None:
        """Engine and learner apply the head themselves; some models scale or cap their logits after it."""
        probe = torch.arange(4, device=self.device)[None]  # several: the embedding of padding is often zero
        training = self.model.training
        self.model.eval()
        whole = self.model(input_ids=probe, use_cache=False).logits
        parts = self._head(self._decoder(input_ids=probe, use_cache=False).last_hidden_state)
        self.model.train(training)
        if not torch.allclose(whole, parts):
            raise ValueError(
                f"{kind} changes its logits after the output head (a scale or a cap), which is not "
                "supported; choose a model whose logits are the head's output"
            )

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def refresh(self, version: int) -> None:
        """The shared model's weights have changed: caches of older versions are refused from now on."""
        self.version = version

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Copy new weights in by name.

        Raises:
            ValueError: a name the model doesn't have, or a tensor of another shape.
        """
        own = dict(self.model.named_parameters(remove_duplicate=False))  # tied weights have two names
        with torch.no_grad():
            for name, tensor in weights:
                if name not in own or own[name].shape != tensor.shape:
                    have = tuple(own[name].shape) if name in own else "no such parameter"
                    raise ValueError(
                        f"weights for {name!r} of shape {tuple(tensor.shape)}: the model has {have}"
                    )
                own[name].copy_(tensor)
        self.refresh(version)

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Continue every request, `max_batch` at a time; rows with as many new tokens go together."""
        for request in requests:
            self._check(request, sampling)
        was_training = self.model.training
        self.model.eval()
        order = sorted(range(len(requests)), key=lambda i: (_uncached(requests[i]), len(requests[i].tokens)))
        completions: dict[int, Completion] = {}
        for start in range(0, len(order), self.max_batch):
            chunk = order[start : start + self.max_batch]
            completions.update(zip(chunk, self._generate([requests[i] for i in chunk], sampling)))
        self.model.train(was_training)
        return [completions[i] for i in range(len(requests))]

    @torch.inference_mode()
    def score(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[list[int]]], temperature: float
    ) -> list[list[float]]:
        """Log-probability of each continuation; all continuations of a request share its cached prefix."""
        rows = [(r, tokens) for r, several in zip(requests, continuations) for tokens in several]
        for request, tokens in rows:
            self._check(request, Sampling(frozenset(), max(1, len(tokens))))
            if not tokens:
                raise ValueError("a continuation to score has no tokens")
        was_training = self.model.training
        self.model.eval()
        totals: list[float] = []
        for start in range(0, len(rows), self.max_batch):
            totals += self._score(rows[start : start + self.max_batch], temperature)
        self.model.train(was_training)
        scores = iter(totals)
        return [[next(scores) for _ in several] for several in continuations]

    def _score(self, rows: list[tuple[Request, list[int]]], temperature: float) -> list[float]:
        prefixes = [_usable_prefix(request) for request, _ in rows]
        cached = [prefix.length if prefix else 0 for prefix in prefixes]
        capacity = max(len(request.tokens) + len(tokens) for request, tokens in rows)
        shape = (self._layers, len(rows), self._heads, capacity, self._head_size)
        cache = BatchCache(shape, self._head.weight.dtype, self.device)
        for row, prefix in enumerate(prefixes):
            if prefix:
                prefix.copy_into(cache.row(row))
        new = [[*r.tokens[count:], *tokens[:-1]] for (r, tokens), count in zip(rows, cached)]
        self.forwarded_tokens += sum(map(len, new))
        hidden = self._run(cache, new, cached, 0)
        totals = []
        for row, (request, tokens) in enumerate(rows):
            first = len(request.tokens) - cached[row] - 1  # predicts the continuation's first token
            logits = self._head(hidden[row, first : first + len(tokens)]).float() / temperature
            chosen = torch.tensor(tokens, device=self.device)[:, None]
            totals.append(float(torch.log_softmax(logits, -1).gather(1, chosen).sum()))
        return totals

    def _check(self, request: Request, sampling: Sampling) -> None:
        if not request.tokens:
            raise ValueError("a request has no tokens; the context must hold at least one")
        if len(request.tokens) + sampling.max_new_tokens > self.window:
            raise ValueError(
                f"a context of {len(request.tokens)} tokens leaves no room for {sampling.max_new_tokens} new "
                f"ones in the model's window of {self.window}; end the episode or cap observations"
            )
        if request.cache is not None and request.cache.version != self.version:
            raise ValueError(
                f"a cache of weight version {request.cache.version} was given to version {self.version}; "
                "drop caches when weights change"
            )

    def _generate(self, requests: list[Request], sampling: Sampling) -> list[Completion]:
        prefixes = [_usable_prefix(request) for request in requests]
        cached = [prefix.length if prefix else 0 for prefix in prefixes]
        lengths = [len(request.tokens) for request in requests]
        capacity = max(lengths) + sampling.max_new_tokens
        shape = (self._layers, len(requests), self._heads, capacity, self._head_size)
        cache = BatchCache(shape, self._head.weight.dtype, self.device)
        for row, prefix in enumerate(prefixes):
            if prefix:
                prefix.copy_into(cache.row(row))
        uniform = np.stack([uniforms(r.key, sampling.max_new_tokens) for r in requests])
        draws = torch.from_numpy(uniform).to(self.device)
        new = [request.tokens[count:] for request, count in zip(requests, cached)]
        parts = [self._prefill(cache, new[a:b], cached[a:b], a) for a, b in _alike(list(map(len, new)))]
        logits = torch.cat(parts)
        self.forwarded_tokens += sum(map(len, new))

        out = [Completion([], [], [], False, self.version) for _ in requests]
        rows = list(range(len(requests)))  # which request each row of the buffer still works for
        ends = torch.tensor(lengths, device=self.device)  # tokens each row holds in the cache
        for step in range(sampling.max_new_tokens):
            tokens = self._draw(out, rows, logits, draws[:, step], sampling)
            last = step + 1 == sampling.max_new_tokens
            running = [k for k, i in enumerate(rows) if not (last or out[i].stopped)]
            for k in set(range(len(rows))) - set(running):
                i = rows[k]
                segment = cache.row(k)[:, :, :, cached[i] : lengths[i] + step].clone()
                out[i].cache = Prefix(prefixes[i], segment, self.version)
            if not running:
                break
            if len(running) < len(rows):
                running = _closed_up(running)
                cache.keep(running, max(lengths[rows[k]] for k in running) + step)
                keep = torch.tensor(running, device=self.device)
                tokens, ends, draws = tokens[keep], ends[keep], draws[keep]
                rows = [rows[k] for k in running]
            logits = self._forward(cache, tokens[:, None], ends[:, None], int(ends.max()) + 1)[:, 0]
            logits = self._head(logits)
            self.forwarded_tokens += len(rows)
            ends = ends + 1
        return out

    def _prefill(
        self, cache: BatchCache, new: list[list[int]], cached: list[int], first: int
    ) -> torch.Tensor:
        """Run the uncached part of the contexts of the rows from `first` on.

        Returns:
            The next-token logits, float[rows, vocabulary].
        """
        hidden = self._run(cache, new, cached, first)
        final = torch.tensor([len(tokens) - 1 for tokens in new], device=self.device)
        return self._head(hidden[torch.arange(len(new), device=self.device), final])

    def _run(self, cache: BatchCache, new: list[list[int]], cached: list[int], first: int) -> torch.Tensor:
        """Run new tokens of the rows from `first` on: hidden states, float[rows, longest, hidden size]."""
        width = max(map(len, new))
        ids = torch.zeros((len(new), width), dtype=torch.long)
        for row, tokens in enumerate(new):
            ids[row, : len(tokens)] = torch.tensor(tokens)
        positions = torch.tensor(cached)[:, None] + torch.arange(width)
        # Padding stands behind its row, where no real token looks; the last slot is never a real token's.
        positions = positions.clamp(max=cache.capacity - 1).to(self.device)
        end = min(cache.capacity, int(positions.max()) + 1)
        return self._forward(cache, ids.to(self.device), positions, end, first)

    def _forward(
        self, cache: BatchCache, ids: torch.Tensor, positions: torch.Tensor, end: int, first: int = 0
    ) -> torch.Tensor:
        mask = cache.place(positions, end, first)
        arguments = {self._cache_argument: cache}
        return self._decoder(
            input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, **arguments
        ).last_hidden_state

    def _draw(
        self,
        out: list[Completion],
        rows: list[int],
        logits: torch.Tensor,
        draw: torch.Tensor,
        sampling: Sampling,
    ) -> torch.Tensor:
        """Draw one token a row by inverting the cumulative distribution, and write it down."""
        logprobs = torch.log_softmax(logits.float() / sampling.temperature, dim=-1)
        probabilities = logprobs.exp()
        entropies = -(probabilities * logprobs).nan_to_num(0.0).sum(-1)
        if sampling.greedy:
            tokens = logprobs.argmax(-1)
        else:
            cumulative = _restricted(probabilities, sampling).double().cumsum(-1)
            target = draw[:, None] * cumulative[:, -1:]
            tokens = torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(
                max=logprobs.shape[-1] - 1
            )
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]
        for i, token, logprob, entropy in zip(rows, tokens.tolist(), chosen.tolist(), entropies.tolist()):
            completion = out[i]
            completion.tokens.append(token)
            completion.logprobs.append(logprob)
            completion.entropies.append(entropy)  # type: ignore[union-attr]
            completion.stopped = token in sampling.stop_ids
        return tokens


def _check_attention(config: PreTrainedConfig) -> None:
    """Refuse what caches cannot be forked for, or masks are read otherwise by."""
    sliding = ["sliding_attention"] if getattr(config, "sliding_window", None) else ["full_attention"]
    kinds = set(getattr(config, "layer_types", None) or sliding)
    if kinds != {"full_attention"}:
        raise ValueError(
            f"{config.model_type} has layers of kind {sorted(kinds)}; caches fork for full attention only"
        )
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":  # a row would depend on how long the others are
        raise ValueError(f"{config.model_type} turns positions by the longest row (longrope); not supported")
    if config._attn_implementation not in attention.KNOWN:  # "eager" would add the boolean mask to its scores
        raise ValueError(
            f"the model's attention is {config._attn_implementation!r}, which reads masks otherwise; call "
            'model.set_attn_implementation("sdpa")'
        )


def _restricted(probabilities: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Zero what top-k and top-p exclude: float[rows, vocabulary], not normalised."""
    if not sampling.top_k and sampling.top_p == 1.0:
        return probabilities
    ranked, order = probabilities.sort(-1, descending=True)
    if sampling.top_k:
        ranked[:, sampling.top_k :] = 0.0
    share = ranked / ranked.sum(-1, keepdim=True)
    allowed = (share.cumsum(-1) - share < sampling.top_p) & (ranked > 0)  # the mass before a token
    return probabilities * torch.zeros_like(allowed).scatter(1, order, allowed)


def _usable_prefix(request: Request) -> Prefix | None:
    """The cached prefix, cut so that at least one token is left to run."""
    if request.cache is None:
        return None
    return request.cache.cut(min(request.cache.length, len(request.tokens) - 1))


def _uncached(request: Request) -> int:
    """Tokens that have to be run."""
    covered = request.cache.length if request.cache else 0
    return max(1, len(request.tokens) - covered)


def _alike(widths: list[int]) -> list[tuple[int, int]]:
    """Split rows of rising width into ranges that are run together.

    None is less than half as wide as the widest of its range: a sibling's one token beside a first prompt
    would cost as much as the prompt. And no range has more than `PREFILL_TOKENS`, unless it is one row.
    """
    ranges: list[tuple[int, int]] = []
    end = len(widths)
    while end:
        widest = widths[end - 1]
        start = end - 1
        while start and 2 * widths[start - 1] >= widest and (end - start + 1) * widest <= PREFILL_TOKENS:
            start -= 1
        ranges.append((start, end))
        end = start
    return ranges[::-1]


def _closed_up(rows: list[int]) -> list[int]:
    """The same rows (rising), in an order in which all that can stay where they are do."""
    stay = [row for row in rows if row < len(rows)]
    move = iter(rows[len(stay) :])
    staying = set(stay)
    return [row if row in staying else next(move) for row in range(len(rows))]
