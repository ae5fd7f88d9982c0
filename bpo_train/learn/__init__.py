"""Packing, loss and the learner."""

from .learner import Learner, LearnOptions

__all__ = ["LearnOptions", "Learner"]
