"""Full-precision weights for a model that is kept in fewer bits.

A weight in bfloat16 has 8 significant bits: a step of 1e-6 on a weight of 0.05 is rounded away, and training
does nothing. So the optimiser works on float32 copies, and the model gets their rounded values.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch


class FullPrecision:
    """What an optimiser should work on, instead of parameters that may be in fewer than 32 bits.

    Attributes:
        weights: a float32 copy of each parameter, or the parameter itself where it is in float32.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self.weights = [p if p.dtype == torch.float32 else p.detach().float() for p in self._parameters]

    @property
    def _copies(self) -> list[tuple[torch.nn.Parameter, torch.Tensor]]:
        return [(p, w) for p, w in zip(self._parameters, self.weights) if p is not w]

    def take_gradients(self) -> None:
        """Move the parameters' gradients over to the copies."""
        for parameter, weight in self._copies:
            weight.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None

    @torch.no_grad()
    def write_back(self) -> None:
        """Give the parameters the rounded values of the copies."""
        for parameter, weight in self._copies:
            parameter.copy_(weight)

    def state_dict(self) -> list[torch.Tensor]:
        """The copies."""
        return [weight for _, weight in self._copies]

    def load_state_dict(self, state: list[torch.Tensor]) -> None:
        """The inverse; the parameters follow.

        Raises:
            ValueError: of another number of copies.
        """
        copies = self._copies
        if len(state) != len(copies):
            raise ValueError(f"{len(state)} full-precision weights, but the model needs {len(copies)}")
        for (_, weight), saved in zip(copies, state):
            weight.copy_(saved)
        self.write_back()
