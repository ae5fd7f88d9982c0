"""The learner: from trees with credit to one optimiser step (or several)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from ..credit import TreeCredit
from ..tree import RolloutTree
from .forward import token_logprobs, token_logprobs_and_kl
from .loss import KL, clipped_objective, mismatch_weight
from .packing import LAYOUTS, Packed, collate, micro_batches
from .precision import FullPrecision


@dataclass(frozen=True)
class LearnOptions:
    """How to update. The defaults are the paper's where it names one.

    Attributes:
        learning_rate: peak of AdamW's.
        decay: "cosine" to zero over `updates`, or "constant".
        warmup: updates of linear warm-up.
        updates: length of the run, for the cosine.
        betas, weight_decay: of AdamW.
        clip: epsilon of Eq 6. With one epoch and one mini-batch the ratio is 1 and the clip does nothing.
        kl_weight: beta of Eq 6; 0 needs no reference model. Every action token counts alike in the KL term,
            whatever the weight of its pair.
        kl: "exact" | "k2" | "k3".
        epochs, minibatches: passes over a batch of trees, and steps in each.
        normalise: "constant" divides the summed loss by trees x `loss_length`, "tokens" by the action tokens.
        loss_length: the fixed length of "constant".
        max_grad_norm: clip of the gradient's norm.
        mismatch_bound: truncation of the proximal/behaviour weight.
        layout: "tree" (every token once) or "rows".
        max_tokens: padded tokens in one forward pass.
        logit_chunk: positions whose full-vocabulary log-probs exist at one time.
    """

    learning_rate: float = 2e-6
    decay: str = "cosine"
    warmup: int = 0
    updates: int = 3000
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    clip: float = 0.2
    kl_weight: float = 0.05
    kl: str = "exact"
    epochs: int = 1
    minibatches: int = 1
    normalise: str = "constant"
    loss_length: int = 256
    max_grad_norm: float = 1.0
    mismatch_bound: float = 2.0
    layout: str = "tree"
    max_tokens: int = 8192
    logit_chunk: int = 1024

    def __post_init__(self) -> None:
        for name, known in (
            ("decay", ("cosine", "constant")),
            ("kl", tuple(KL)),
            ("normalise", ("constant", "tokens")),
            ("layout", tuple(LAYOUTS)),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(known)}")
        for name in ("epochs", "minibatches", "loss_length", "max_tokens", "logit_chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 1")
        for name in ("learning_rate", "clip", "max_grad_norm", "mismatch_bound"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a value above 0")
        for name in ("kl_weight", "weight_decay", "warmup", "updates"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 or more")

    @property
    def on_policy(self) -> bool:
        """One step a batch: the proximal policy is the current one, every ratio is 1."""
        return self.epochs == 1 and self.minibatches == 1


class Learner:
    """Updates a model in one process.

    Args:
        model: trained in place.
        options: see `LearnOptions`.
        temperature: of sampling; log-probs and KL are taken at it.
        reference: the frozen policy of the KL term; needed when `kl_weight` is not 0.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        options: LearnOptions,
        temperature: float = 1.0,
        reference: PreTrainedModel | None = None,
    ) -> None:
        if options.kl_weight and reference is None:
            raise ValueError(
                f"kl_weight is {options.kl_weight}, but there is no reference model to measure KL against"
            )
        self.model = model
        self.options = options
        self.temperature = temperature
        self.reference = reference
        self.updates = 0
        self.precise = FullPrecision(p for p in model.parameters() if p.requires_grad)
        self.optimizer = torch.optim.AdamW(
            self.precise.weights,
            lr=options.learning_rate,
            betas=options.betas,
            weight_decay=options.weight_decay,
        )

    def learning_rate(self, update: int) -> float:
        """Rate of the 0-based `update`."""
        o = self.options
        rate = o.learning_rate * min(1.0, (update + 1) / (o.warmup + 1))
        if o.decay == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, update / o.updates)))
        return rate

    def update(
        self, trees: Sequence[RolloutTree], credits: Sequence[TreeCredit], generator: torch.Generator
    ) -> dict[str, float]:
        """One update on a batch of trees. Returns metrics: loss, kl, clip_fraction, grad_norm, mismatch."""
        o = self.options
        pack = LAYOUTS[o.layout]
        packed = [pack(tree, credit, bool(o.kl_weight)) for tree, credit in zip(trees, credits)]
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.updates)
        self.model.eval()  # dropout would make a ratio of anything but 1 out of equal weights
        proximal = {} if o.on_policy else self._proximal([s for sequences in packed for s in sequences])
        totals: dict[str, float] = defaultdict(float)
        steps = 0
        for _ in range(o.epochs):
            order = torch.randperm(len(trees), generator=generator)
            for part in order.tensor_split(min(o.minibatches, len(trees))):
                chosen = part.tolist()
                sequences = [s for i in chosen for s in packed[i]]
                scale = o.loss_length * len(chosen)
                if o.normalise == "tokens":
                    scale = max(1, sum(trees[i].generated_tokens() for i in chosen))
                if sequences:
                    self._step(sequences, scale, proximal, totals)
                steps += 1
        self.updates += 1
        tokens = max(1.0, totals["tokens"])
        metrics = {name: totals[name] / tokens for name in ("kl", "clip_fraction", "mismatch")}
        metrics["loss"] = totals["loss"] / steps
        metrics["grad_norm"] = totals["grad_norm"] / steps
        passes = o.epochs + (not o.on_policy)
        metrics["learned_tokens"] = passes * sum(len(s.tokens) for sequences in packed for s in sequences)
        metrics["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        return metrics

    @torch.no_grad()
    def _proximal(self, sequences: Sequence[Packed]) -> dict[int, torch.Tensor]:
        """Log-probs under the collecting weights, by the learner's own forward pass and layout."""
        found: dict[int, torch.Tensor] = {}
        for group in micro_batches(sequences, self.options.max_tokens):
            batch = collate(group, self._device)
            logprobs = token_logprobs(self.model, batch, self.temperature, self.options.logit_chunk)
            for sequence, part in zip(group, logprobs.split([len(s.targets) for s in group])):
                found[id(sequence)] = part
        return found

    def _step(
        self,
        sequences: Sequence[Packed],
        scale: float,
        proximal: dict[int, torch.Tensor],
        totals: dict[str, float],
    ) -> None:
        """One optimiser step on Eq 6 (with the KL term where it belongs: a penalty)."""
        o = self.options
        self.optimizer.zero_grad(set_to_none=True)
        for group in micro_batches(sequences, o.max_tokens):
            batch = collate(group, self._device)
            penalty = None
            if o.kl_weight and self.reference is not None:
                current, penalty = token_logprobs_and_kl(
                    self.model, self.reference, batch, self.temperature, o.logit_chunk, KL[o.kl]
                )
            else:
                current = token_logprobs(self.model, batch, self.temperature, o.logit_chunk)
            anchor = torch.cat([proximal[id(s)] for s in group]) if proximal else current.detach()
            objective = clipped_objective(current, anchor, batch.advantages, o.clip)
            trust = mismatch_weight(anchor, batch.behaviour, o.mismatch_bound)
            loss = -(batch.weights * trust * objective).sum() / scale
            if penalty is not None:
                loss = loss + o.kl_weight * penalty.sum() / scale
                totals["kl"] += float(penalty.detach().sum())
            loss.backward()
            totals["loss"] += float(loss.detach())
            totals["tokens"] += len(current)
            totals["clip_fraction"] += float(((current - anchor).exp() - 1).abs().gt(o.clip).sum())
            totals["mismatch"] += float((anchor - batch.behaviour).abs().sum())
        self.precise.take_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.precise.weights, o.max_grad_norm)
        if not torch.isfinite(norm):
            raise FloatingPointError(
                f"the gradient of update {self.updates + 1} is {float(norm)}; the weights are left as they "
                "were. Look for rewards that are not finite, or lower learning_rate"
            )
        totals["grad_norm"] += float(norm)
        self.optimizer.step()
        self.precise.write_back()

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def state_dict(self) -> dict[str, Any]:
        """What the optimiser holds and the update counter (the model is saved by the policy)."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "precise": self.precise.state_dict(),
            "updates": self.updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.precise.load_state_dict(state["precise"])
        self.updates = int(state["updates"])
