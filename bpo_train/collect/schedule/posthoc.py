"""Schedules that pick from the finished backbone: the paper's top entropy and its controls."""

from __future__ import annotations

import numpy as np

from bpo_train.collect.entropy import decision_entropy
from bpo_train.collect.schedule.base import PostHocSchedule, register
from bpo_train.tree import Branch


@register("entropy")
class TopEntropy(PostHocSchedule):
    """The paper's: the M decisions of highest H_t. Of equal ones the earlier is taken."""

    reads_entropy = True

    def rank(self, backbone: Branch, count: int, rng: np.random.Generator) -> list[int]:
        entropies = [decision_entropy(d, self.options.measure) for d in backbone.decisions[:count]]
        return sorted(range(count), key=lambda depth: -entropies[depth])


@register("lowest-entropy")
class LowestEntropy(PostHocSchedule):
    """The paper's control: the M decisions of lowest H_t. Of equal ones the earlier is taken."""

    reads_entropy = True

    def rank(self, backbone: Branch, count: int, rng: np.random.Generator) -> list[int]:
        entropies = [decision_entropy(d, self.options.measure) for d in backbone.decisions[:count]]
        return sorted(range(count), key=lambda depth: entropies[depth])


@register("random")
class Random(PostHocSchedule):
    """M decisions drawn uniformly from the realised backbone, whose length is knowledge of the future."""

    def rank(self, backbone: Branch, count: int, rng: np.random.Generator) -> list[int]:
        return [int(depth) for depth in rng.permutation(count)]
