"""Eq 6 and the KL terms, by hand and by enumeration of a small vocabulary."""

from __future__ import annotations

import math

import pytest
import torch

from bpo_train.learn.loss import KL, clipped_objective, kl_exact, mismatch_weight


def objective(ratio: float, advantage: float, clip: float = 0.2) -> tuple[float, float]:
    """Eq 6's summand and its derivative with respect to the current log-prob."""
    current = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    value = clipped_objective(current, torch.zeros(1, dtype=torch.float64), torch.tensor([advantage]), clip)
    value.backward()
    return float(value.detach()), float(current.grad)


# min(rho A, clip(rho, 0.8, 1.2) A) and its derivative, which is rho A where the first is the smaller, else 0
@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.1, 2.0, 2.2, 2.2),  # inside
        (0.9, -2.0, -1.8, -1.8),
        (1.5, 2.0, 2.4, 0.0),  # a good action made likely enough: held at 1.2
        (0.5, -2.0, -1.6, 0.0),  # a bad one made unlikely enough: held at 0.8
        (0.5, 2.0, 1.0, 1.0),  # a good action that became unlikely is drawn back in full
        (1.5, -2.0, -3.0, -3.0),  # and a bad one that became likely pushed away
    ],
)
def test_eq_6_by_hand(ratio, advantage, value, slope):
    assert objective(ratio, advantage) == (pytest.approx(value), pytest.approx(slope))


def test_at_equal_policies_the_slope_is_the_advantage():
    assert objective(1.0, 0.7) == (pytest.approx(0.7), pytest.approx(0.7))


def test_mismatch_weight_is_the_ratio_up_to_its_bound():
    proximal, behaviour = torch.tensor([-1.0, -1.0, -3.0]), torch.tensor([-1.0, -4.0, -1.0])
    # exp(0), exp(3) cut to 2, exp(-2)
    assert mismatch_weight(proximal, behaviour, 2.0).tolist() == pytest.approx([1.0, 2.0, math.exp(-2)])


def test_mismatch_weight_has_no_gradient():
    proximal = torch.tensor([-1.0], requires_grad=True)
    assert not mismatch_weight(proximal, torch.tensor([-1.5]), 2.0).requires_grad


def test_exact_kl_by_hand():
    # pi = (1/2, 1/2), ref = (1/4, 3/4): 1/2 log 2 + 1/2 log 2/3
    logprobs, reference = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]).log()
    (value,) = kl_exact(logprobs, reference, torch.tensor([0])).tolist()
    assert value == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))


@pytest.mark.parametrize("kind", KL)
def test_kl_of_a_policy_with_itself_is_zero_and_flat(kind):
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    logprobs = logits.log_softmax(-1)
    value = KL[kind](logprobs, logprobs.detach(), torch.tensor([0, 1, 2, 3, 4]))
    value.sum().backward()
    assert value.tolist() == pytest.approx([0.0] * 5)
    assert logits.grad.abs().max() < 1e-12


def by_enumeration(kind: str):
    """E over the drawn token of the term's value and of its gradient in the logits; and both exact KLs."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, dtype=torch.float64, generator=generator, requires_grad=True)
    reference = torch.randn(6, dtype=torch.float64, generator=generator).log_softmax(-1)
    logprobs = logits.log_softmax(-1)
    table = logprobs.expand(6, 6), reference.expand(6, 6)
    terms = KL[kind](*table, torch.arange(6))  # the term for each token that may be drawn
    probabilities = logprobs.detach().exp()

    def slope(value: torch.Tensor) -> list[float]:
        return torch.autograd.grad(value, logits, retain_graph=True)[0].tolist()

    forward = (logprobs.exp() * (logprobs - reference)).sum()  # KL(pi || ref)
    backward = (reference.exp() * (reference - logprobs)).sum()  # KL(ref || pi)
    return (
        float((probabilities * terms.detach()).sum()),
        slope((probabilities * terms).sum()),  # on policy: the draw itself has no gradient
        (float(forward.detach()), slope(forward)),
        (float(backward.detach()), slope(backward)),
    )


def test_exact_has_value_and_gradient_of_the_kl():
    value, slope, forward, _ = by_enumeration("exact")
    assert (value, slope) == (pytest.approx(forward[0]), pytest.approx(forward[1]))


def test_k2_has_the_gradient_of_the_kl_on_policy():
    _, slope, forward, _ = by_enumeration("k2")
    assert slope == pytest.approx(forward[1])


def test_k3_has_the_value_of_the_kl_but_the_gradient_of_the_other_one():
    value, slope, forward, backward = by_enumeration("k3")
    assert value == pytest.approx(forward[0])
    assert slope == pytest.approx(backward[1])
    assert slope != pytest.approx(forward[1], rel=0.05)
