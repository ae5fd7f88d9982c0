"""Log-probs and KL in bounded memory, and models over which a tree cannot be run in one sequence."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bpo_train.learn.forward import token_logprobs, token_logprobs_and_kl
from bpo_train.learn.loss import KL
from bpo_train.learn.packing import LAYOUTS, collate, pack_tree
from random_trees import random_credit, random_tree
from tiny_models import tiny_model

CPU = torch.device("cpu")
VOCABULARY = 509  # like no other size in the model, so that a table over the vocabulary is known by its shape


class LargestTable(TorchDispatchMode):
    """Watches every tensor that is made; `rows` of the longest one over the vocabulary."""

    rows = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor) and tensor.ndim and tensor.shape[-1] == VOCABULARY:
                self.rows = max(self.rows, tensor.numel() // VOCABULARY)
        return out


def batch_of(layout):
    trees = [random_tree(seed, forks=6, vocabulary=VOCABULARY) for seed in range(4)]
    packed = [s for tree in trees for s in layout(tree, random_credit(tree, 0), True)]
    return collate(packed, CPU)


def one_tree():
    return collate(pack_tree(random_tree(0), random_credit(random_tree(0), 0), True), CPU)


@pytest.mark.parametrize("kl", ["", "exact"])
@pytest.mark.parametrize("layout", LAYOUTS.values())
def test_no_table_over_the_vocabulary_is_longer_than_a_chunk(layout, kl):
    # a hidden size beyond the chunk would make the head's own gradient the longest: 16 rows
    model, reference = (tiny_model(vocabulary=VOCABULARY, seed=seed) for seed in (0, 1))
    batch = batch_of(layout)
    assert len(batch.targets) > 100
    with LargestTable() as largest:
        if kl:
            logprobs, penalty = token_logprobs_and_kl(model, reference, batch, 1.0, 20, KL[kl])
            (logprobs.sum() + penalty.sum()).backward()
        else:
            token_logprobs(model, batch, 1.0, 20).sum().backward()
    assert largest.rows == 20


def test_eager_attention_is_refused_for_trees():
    model = tiny_model()
    model.set_attn_implementation("eager")
    with pytest.raises(ValueError, match='or use the layout "rows"'):
        token_logprobs(model, one_tree(), 1.0, 8)


def test_a_model_that_keeps_the_spans_from_its_attention_is_refused():
    model = tiny_model()
    layer = model.get_decoder().layers[1]
    forward = layer.forward
    layer.forward = lambda *args, spans=None, **kwargs: forward(*args, **kwargs)
    with pytest.raises(ValueError, match="does not hand the arguments"):
        token_logprobs(model, one_tree(), 1.0, 8)


def test_running_over_a_tree_leaves_the_model_as_it_was_for_everything_else():
    model, ids = tiny_model(), torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    seen = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    before = model(ids, attention_mask=seen).logits
    token_logprobs(
        model, collate(pack_tree(random_tree(0), random_credit(random_tree(0), 0), True), CPU), 1.0, 8
    )
    assert torch.equal(model(ids, attention_mask=seen).logits, before)
