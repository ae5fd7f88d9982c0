"""Packing: a whole tree in one sequence is worth exactly what its rows are."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bpo_train.credit import TreeCredit
from bpo_train.engine import Request, Sampling
from bpo_train.engine.hf import HFEngine
from bpo_train.learn.forward import token_logprobs, token_logprobs_and_kl
from bpo_train.learn.loss import KL, clipped_objective, mismatch_weight
from bpo_train.learn.packing import LAYOUTS, collate, micro_batches, pack_rows, pack_tree
from bpo_train.tree import Decision, RolloutTree
from random_trees import random_credit, random_tree, trees
from tiny_models import MODELS, tiny_model

CPU = torch.device("cpu")
few = settings(max_examples=50, deadline=None)


def ones(tree: RolloutTree) -> TreeCredit:
    table = [[1.0] * len(branch.decisions) for branch in tree.branches]
    return TreeCredit(table, table)


def loss_and_gradient(model, reference, packed, kl: str, max_tokens: int = 10**6):
    """Eq 6 with a KL penalty of weight 0.1, summed; and its gradient as one vector."""
    model.zero_grad()
    total = 0.0
    for group in micro_batches(packed, max_tokens):
        batch = collate(group, CPU)
        if kl:
            current, penalty = token_logprobs_and_kl(model, reference, batch, 0.8, 7, KL[kl])
        else:
            current, penalty = token_logprobs(model, batch, 0.8, 7), torch.zeros(())
        anchor = current.detach() + 0.3 * torch.sin(batch.behaviour)  # some ratios leave the clip range
        objective = clipped_objective(current, anchor, batch.advantages, 0.2)
        trust = mismatch_weight(anchor, batch.behaviour, 2.0)
        loss = -(batch.weights * trust * objective).sum() + 0.1 * penalty.sum()
        loss.backward()
        total += float(loss.detach())
    return total, torch.cat([p.grad.flatten() for p in model.parameters()])


def agree(one, other) -> None:
    assert one[0] == pytest.approx(other[0], rel=1e-5, abs=1e-5)
    assert float((one[1] - other[1]).norm()) <= 1e-5 * float(other[1].norm())


# Equality of the layouts


@few
@given(trees, st.integers(0, 999), st.sampled_from(["", "exact", "k2", "k3"]))
def test_tree_and_rows_agree_in_loss_and_gradient(tree, seed, kl):
    model, reference = tiny_model(), tiny_model(seed=1)
    credit = random_credit(tree, seed)
    packed, rows = pack_tree(tree, credit, bool(kl)), pack_rows(tree, credit, bool(kl))
    if not packed:  # every advantage is 0
        assert rows == []
        return
    agree(loss_and_gradient(model, reference, packed, kl), loss_and_gradient(model, reference, rows, kl))


@pytest.mark.parametrize("kind", MODELS)
def test_the_layouts_agree_for_every_family(kind):
    model, reference, tree = tiny_model(kind), tiny_model(kind, seed=1), random_tree(3, forks=6)
    packed = [layout(tree, random_credit(tree, 0), True) for layout in (pack_tree, pack_rows)]
    agree(*(loss_and_gradient(model, reference, sequences, "exact") for sequences in packed))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_micro_batches_change_nothing(layout):
    model, reference = tiny_model(), tiny_model(seed=1)
    grown = [random_tree(seed) for seed in range(4)]
    packed = [s for tree in grown for s in LAYOUTS[layout](tree, random_credit(tree, 0), True)]
    whole = loss_and_gradient(model, reference, packed, "exact")
    agree(loss_and_gradient(model, reference, packed, "exact", max_tokens=1), whole)
    agree(loss_and_gradient(model, reference, packed, "exact", max_tokens=150), whole)


# What a sequence holds


@few
@given(trees)
def test_the_tree_layout_holds_every_token_once(tree):
    (packed,) = pack_tree(tree, ones(tree), True)
    assert len(packed.tokens) == tree.stored_tokens()


def visible(packed) -> torch.Tensor:
    """Who sees whom: bool[L, L]."""
    starts = [0]
    for span in packed.spans:
        starts.append(starts[-1] + span.length)
    table = torch.zeros(starts[-1], starts[-1], dtype=torch.bool)
    for start, span in zip(starts, packed.spans):
        own = slice(start, start + span.length)
        table[own, own] = torch.ones(span.length, span.length, dtype=torch.bool).tril()
        for number, count in span.before:
            table[own, starts[number] : starts[number] + count] = True
    return table


@few
@given(trees)
def test_a_token_of_the_tree_sees_its_own_path_and_nothing_else(tree):
    (packed,) = pack_tree(tree, ones(tree), True)
    start = 0
    for index, branch in enumerate(tree.branches):
        row = tree.row(index)
        own = sum(len(d.context) + len(d.action) for d in branch.decisions)
        for offset in range(own):
            seen = visible(packed)[start + offset].nonzero()[:, 0]
            length = len(row) - own + offset + 1
            assert packed.tokens[seen].tolist() == row[:length]
            assert packed.positions[seen].tolist() == list(range(length))
        start += own


@few
@given(trees)
def test_rows_are_what_the_model_has_seen_and_said(tree):
    for index, packed in enumerate(pack_rows(tree, ones(tree), True)):
        assert packed.tokens.tolist() == tree.row(index)
        assert packed.positions.tolist() == list(range(len(packed.tokens)))
        assert packed.spans is None


@few
@given(trees, st.sampled_from(list(LAYOUTS)))
def test_every_action_token_is_trained_exactly_once_with_its_own_credit(tree, layout):
    credit = random_credit(tree, 0)
    packed = LAYOUTS[layout](tree, credit, True)
    trained = Counter(
        (int(s.tokens[t]), float(a), float(w), float(b))
        for s in packed
        for t, a, w, b in zip(s.targets, s.advantages, s.weights, s.behaviour)
    )
    single = torch.float32
    expected = Counter(
        (token, *torch.tensor([advantage, weight, logprob], dtype=single).tolist())
        for branch, row_a, row_w in zip(tree.branches, credit.advantages, credit.weights)
        for decision, advantage, weight in zip(branch.decisions, row_a, row_w)
        for token, logprob in zip(decision.action, decision.logprobs)
    )
    assert trained == expected


@few
@given(trees, st.sampled_from(list(LAYOUTS)))
def test_the_predictor_is_the_token_before_along_the_path(tree, layout):
    for packed in LAYOUTS[layout](tree, ones(tree), True):
        assert (packed.positions[packed.predictors] == packed.positions[packed.targets] - 1).all()
        if packed.spans is not None:
            assert visible(packed)[packed.targets, packed.predictors].all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_decisions_without_credit_are_left_out_unless_asked_for(layout):
    tree = random_tree(1, forks=2, extras=0)
    credit = ones(tree)
    credit.advantages[0] = [0.0] * len(credit.advantages[0])
    credit.weights[1] = [0.0] * len(credit.weights[1])
    left = sum(len(d.action) for d in tree.branches[2].decisions)

    def trained(keep_zero: bool) -> int:
        return sum(len(s.targets) for s in LAYOUTS[layout](tree, credit, keep_zero))

    assert trained(False) == left
    assert trained(True) == tree.generated_tokens()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tree_without_credit_gives_no_sequences(layout):
    tree = random_tree(1)
    zero = TreeCredit([[0.0] * len(b.decisions) for b in tree.branches], ones(tree).weights)
    assert LAYOUTS[layout](tree, zero, False) == []


def test_an_empty_observation_in_a_fork_keeps_the_path():
    # nothing entered between two actions of the fork: the second follows the first, not the branch point
    tree = RolloutTree("t")
    tree.backbone.decisions = [Decision([1, 2], [3], [-1.0], None, "a")]
    fork = tree.branches[tree.add_fork(0, 0)]
    fork.decisions = [Decision([], [4, 5], [-1.0] * 2, None, "b"), Decision([], [6], [-1.0], None, "c")]
    (packed,) = pack_tree(tree, ones(tree), True)
    follows = {
        int(packed.tokens[t]): int(packed.tokens[p]) for t, p in zip(packed.targets, packed.predictors)
    }
    assert follows == {3: 2, 4: 2, 5: 4, 6: 5}


# Agreement with the engine


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_learners_forward_gives_the_engines_logprobs(kind, layout):
    model, sampling = tiny_model(kind), Sampling(frozenset({5, 9}), 6, temperature=0.8)
    engine = HFEngine(model)
    tree = RolloutTree("t")

    def act(branch: int, row: list[int], context: list[int], key: tuple[int, ...], cache=None):
        (c,) = engine.generate([Request(row, key, cache)], sampling)
        tree.branches[branch].decisions.append(Decision(context, c.tokens, c.logprobs, c.entropies, "a"))
        return row + c.tokens, c.cache

    prompt, seen = [1, 2, 3, 4], [7, 8]
    row, cache = act(0, prompt, prompt, (1,))
    for turn in range(3):
        row, cache = act(0, row + seen, seen, (2, turn), cache)
    for sibling in range(2):
        branch = tree.add_fork(0, 1)
        before = tree.row(0)[: len(prompt) + len(tree.backbone.decisions[0].action) + len(seen)]
        after, own = act(branch, before, [], (3, sibling), cache)
        act(branch, after + seen, seen, (4, sibling), own)
    batch = collate(LAYOUTS[layout](tree, ones(tree), True), CPU)
    current = token_logprobs(model, batch, 0.8, chunk=5)
    assert current.tolist() == pytest.approx(batch.behaviour.tolist(), abs=1e-4)


# Batches


def test_chunks_of_positions_change_nothing():
    model, tree = tiny_model(), random_tree(2)
    batch = collate(pack_tree(tree, ones(tree), True), CPU)
    whole = token_logprobs(model, batch, 1.0, chunk=10**6)
    assert token_logprobs(model, batch, 1.0, chunk=1).tolist() == pytest.approx(whole.tolist(), abs=1e-5)


@few
@given(st.lists(st.integers(0, 99), min_size=1, max_size=6), st.integers(1, 400))
def test_micro_batches_hold_every_sequence_once_and_respect_the_limit(seeds, limit):
    grown = [random_tree(seed) for seed in seeds]
    sequences = [s for tree in grown for s in pack_rows(tree, ones(tree), True)]
    groups = list(micro_batches(sequences, limit))
    assert sorted(id(s) for g in groups for s in g) == sorted(id(s) for s in sequences)
    for group in groups:
        assert len(group) == 1 or len(group) * max(len(s.tokens) for s in group) <= limit


def test_no_sequences_make_no_batches():
    assert list(micro_batches([], 100)) == []
