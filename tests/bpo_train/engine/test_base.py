"""The engine seam's own parts: random streams by key, and how tokens may be drawn."""

from __future__ import annotations

import numpy as np
import pytest

from bpo_train.engine import Sampling, uniforms


def test_a_key_always_gives_the_same_draws():
    assert uniforms((1, 2, 3, 4, 5), 4).tolist() == uniforms((1, 2, 3, 4, 5), 4).tolist()


def test_a_longer_stream_begins_with_the_shorter_one():
    assert uniforms((1, 2, 3, 4, 5), 8)[:3].tolist() == uniforms((1, 2, 3, 4, 5), 3).tolist()


def test_draws_lie_in_the_unit_interval_and_are_uniform():
    draws = np.concatenate([uniforms((7, 0, 0, 0, i), 10) for i in range(1000)])
    assert (draws >= 0).all()
    assert (draws < 1).all()
    # standard error of the mean of 10,000 uniforms: 0.2887 / 100
    assert draws.mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("place", range(5))
def test_every_part_of_a_key_counts(place):
    other = [1, 2, 3, 4, 5]
    other[place] += 1
    assert uniforms((1, 2, 3, 4, 5), 4).tolist() != uniforms(tuple(other), 4).tolist()


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="greedy=True"):
        Sampling(frozenset(), 1, temperature)


def test_at_least_one_token_must_be_allowed():
    with pytest.raises(ValueError, match="max_new_tokens is 0"):
        Sampling(frozenset(), 0)
