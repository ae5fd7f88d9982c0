"""Credit methods: rollout trees in, an advantage and a weight per decision out (see `base` for the seam)."""

from bpo_train.credit import bpo, grpo, reinforce, rloo, telescoping  # importing a method registers it
from bpo_train.credit.base import CREDITS, Credit, CreditOptions, TreeCredit, make_credit, register

__all__ = [
    "CREDITS",
    "Credit",
    "CreditOptions",
    "TreeCredit",
    "bpo",
    "grpo",
    "make_credit",
    "register",
    "reinforce",
    "rloo",
    "telescoping",
]
