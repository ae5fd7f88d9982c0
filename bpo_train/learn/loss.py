"""The loss: the clipped policy-gradient objective and the KL penalty. Pure tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch


def clipped_objective(
    current: torch.Tensor, proximal: torch.Tensor, advantages: torch.Tensor, clip: float
) -> torch.Tensor:
    """Eq 6's summand min(rho A, clip(rho, 1 - eps, 1 + eps) A), rho = exp(current - proximal): float[A]."""
    ratio = (current - proximal).exp()
    return torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


def mismatch_weight(proximal: torch.Tensor, behaviour: torch.Tensor, bound: float) -> torch.Tensor:
    """min(exp(proximal - behaviour), bound): corrects for an engine that disagrees; no gradient."""
    return (proximal - behaviour).exp().clamp(max=bound).detach()


def kl_exact(logprobs: torch.Tensor, reference: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """KL(pi || ref) at each position over the full vocabulary: float[A] from float[A, V] twice."""
    return (logprobs.exp() * (logprobs - reference)).sum(-1)


def kl_k2(logprobs: torch.Tensor, reference: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Half the squared log-ratio of the drawn token: on policy its gradient is that of KL(pi || ref)."""
    return 0.5 * _log_ratio(logprobs, reference, chosen) ** 2


def kl_k3(logprobs: torch.Tensor, reference: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """exp(-x) - 1 + x with x the log-ratio of the drawn token, as GRPO uses it.

    Its value estimates KL(pi || ref), but its gradient is that of KL(ref || pi).
    """
    ratio = _log_ratio(logprobs, reference, chosen)
    return (-ratio).exp() - 1 + ratio


def _log_ratio(logprobs: torch.Tensor, reference: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    return (logprobs - reference).gather(-1, chosen[:, None])[:, 0]


KL: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "exact": kl_exact,
    "k2": kl_k2,
    "k3": kl_k3,
}
