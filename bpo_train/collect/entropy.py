"""Policy entropy of a decision (Eq 3) when its action has several tokens.

The engine gives the full-vocabulary entropy at each generated token. Only the one at the *first* token
depends on s_t alone; `mean`, `sum` and `max` run over the tokens of the action that was drawn, so a schedule
that uses them selects on the action itself. The surprisal of the sampled token is never used: it is not an
entropy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bpo_train.tree import Decision

MEASURES = ("first", "mean", "sum", "max", "actions")
SAMPLED_ACTION_MEASURES = frozenset({"mean", "sum", "max"})
"""Measures that look at the sampled action: unusable before it is drawn, and biased after."""


def list_entropy(logprobs: Sequence[float]) -> float:
    """Eq 3 over a list of actions with these log-probabilities, normalised over the list: nats."""
    most = max(logprobs)
    weights = [math.exp(logprob - most) for logprob in logprobs]
    total = sum(weights)
    return -sum(w / total * math.log(w / total) for w in weights if w > 0)


def decision_entropy(decision: Decision, measure: str = "first") -> float:
    """H_t of a decision, in nats.

    Args:
        decision: a decision whose engine recorded entropies.
        measure: "first" generated token, or "mean", "sum", "max" over the action's tokens; "actions": over
            the list of actions that the environment admits.

    Raises:
        ValueError: unknown measure, or no entropies were recorded.
    """
    if measure == "actions":
        if decision.action_entropy is None:
            raise ValueError(
                f"action {decision.text!r} has no entropy over a list of actions: it is taken on backbones, "
                f"where the environment's info lists admissible_actions"
            )
        return decision.action_entropy
    if not decision.entropies:
        raise ValueError(
            f"action {decision.text!r} has no entropies: use an engine that reports them, or a schedule that "
            f"needs none (root, equal, hazard, random)"
        )
    if measure == "first":
        return decision.entropies[0]
    if measure == "mean":
        return sum(decision.entropies) / len(decision.entropies)
    if measure == "sum":
        return sum(decision.entropies)
    if measure == "max":
        return max(decision.entropies)
    raise ValueError(f"no entropy measure is called {measure!r}: choose one of {', '.join(MEASURES)}")
