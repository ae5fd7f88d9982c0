"""The credit seam: from rollout trees to an advantage and a weight for every decision.

A credit sees a whole batch of trees at once, because a baseline may look at the other prompts, and answers
with one `TreeCredit` a tree. Everything is plain Python arithmetic: the same code runs on floats in training
and on `Fraction`s in the exact tests. A new method is one small file with a class under `@register(name)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bpo_train.tree import RolloutTree


@dataclass(slots=True)
class TreeCredit:
    """What each decision of one tree earns, shaped like the tree: [branch][own decision].

    Attributes:
        advantages: A(s, a) of Eq 6, in units of the return.
        weights: how much the pair (s, a) counts in the sum of Eq 6.
    """

    advantages: list[list[float]]
    weights: list[list[float]]


@dataclass(frozen=True, slots=True)
class CreditOptions:
    """Choices where the paper is silent (design: "each choice is a named option"); the first is the default.

    Attributes:
        gamma: discount of the return per decision, 0 < gamma <= 1.
        propagation: lambda of Eq 5, 0 <= lambda <= 1.
        suffix: "inherit": what follows a branch point carries its local advantage, flat; "none": nothing.
        prefix: "backbone": each shared (s, a) counts once, as Eq 6 sums; "rows": once for every leaf below
            it, as if each leaf were a row of its own.
        weight: "pair": 1 each (Eq 6); "split": 1/K for each branch point at or above the step.
        allow_biased: accept combinations whose expected gradient is known to be wrong.
        scale: of `grpo`: "std" divides by the group's standard deviation, "none" does not.
        eps: added to that standard deviation.
    """

    gamma: float = 1.0
    propagation: float = 0.95
    suffix: str = "inherit"
    prefix: str = "backbone"
    weight: str = "pair"
    allow_biased: bool = False
    scale: str = "std"
    eps: float = 1e-4

    def __post_init__(self) -> None:
        allowed = {
            "suffix": ("inherit", "none"),
            "prefix": ("backbone", "rows"),
            "weight": ("pair", "split"),
            "scale": ("std", "none"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(values)}")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma is {self.gamma}: expected a discount above 0 and at most 1")
        if not 0 <= self.propagation <= 1:
            raise ValueError(f"propagation (lambda) is {self.propagation}: expected a value from 0 to 1")


class Credit(Protocol):
    """A credit method.

    Attributes:
        needs_predictable: its estimate is only right where branch points were decided before their action was
            drawn; with a post-hoc schedule it asks for `allow_biased`.
        root_only: it credits rollouts that share nothing but the prompt.
        needs_siblings: it credits by comparison, so a lone rollout earns nothing.
    """

    name: str
    needs_predictable: bool
    root_only: bool
    needs_siblings: bool
    options: CreditOptions

    def __call__(self, trees: Sequence[RolloutTree]) -> list[TreeCredit]:
        """Credit one batch, then learn from it (running baselines), so call it once a batch."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What later batches depend on, as plain JSON data; part of the checkpoint."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class PerTree:
    """Base of credits that look at one tree at a time and remember nothing."""

    def __init__(self, options: CreditOptions) -> None:
        self.options = options

    def __call__(self, trees: Sequence[RolloutTree]) -> list[TreeCredit]:
        return [self.credit(tree) for tree in trees]

    def credit(self, tree: RolloutTree) -> TreeCredit:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but was given {sorted(state)}")


CREDITS: dict[str, Callable[[CreditOptions], Credit]] = {}


def register(name: str) -> Callable[[type], type]:
    """Class decorator: make the credit available as `name`."""

    def add(cls: type) -> type:
        cls.name = name  # type: ignore[attr-defined]
        CREDITS[name] = cls
        return cls

    return add


def make_credit(name: str, options: CreditOptions | None = None) -> Credit:
    """Build the credit called `name`.

    Raises:
        ValueError: no credit has that name.
    """
    if name not in CREDITS:
        raise ValueError(f"no credit is called {name!r}: choose one of {', '.join(sorted(CREDITS))}")
    return CREDITS[name](options or CreditOptions())
