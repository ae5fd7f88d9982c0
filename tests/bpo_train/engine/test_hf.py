"""The transformers engine: the seam's conformance suite, shared storage, and models it must not run."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import CohereConfig, CohereForCausalLM, MistralConfig, MistralForCausalLM

from bpo_train.engine import Request
from bpo_train.engine.hf import HFEngine, _alike, _closed_up
from bpo_train.engine.kv import Prefix
from engine_conformance import NO_STOP, STOP, EngineConformance, check_against_oracle
from tiny_models import tiny_model


class TestHFEngine(EngineConformance):
    def make(self, model, max_batch=64):
        return HFEngine(model, max_batch)


def segments(prefix: Prefix) -> list[torch.Tensor]:
    found = []
    while prefix is not None:
        found.append(prefix._segment)
        prefix = prefix._parent
    return found[::-1]


def storages(prefix: Prefix) -> list[int]:
    return [segment.untyped_storage().data_ptr() for segment in segments(prefix)]


def test_siblings_share_the_storage_of_their_prefix():
    engine = HFEngine(tiny_model())
    (trunk,) = engine.generate([Request([1, 2, 3], (1,))], NO_STOP)
    forks = engine.generate([Request([1, 2, 3, 4], (2, k), trunk.cache) for k in range(3)], NO_STOP)
    first = [storages(fork.cache)[0] for fork in forks]
    assert first == storages(trunk.cache) * 3
    own = [storages(fork.cache)[1] for fork in forks]
    assert len(set(own)) == 3


def test_a_fork_stores_only_the_tokens_it_adds():
    engine = HFEngine(tiny_model())
    (trunk,) = engine.generate([Request([1] * 20, (1,))], NO_STOP)
    (fork,) = engine.generate([Request([1] * 20 + [4], (2,), trunk.cache)], NO_STOP)
    # the trunk covers its 20 tokens and all but its last generated one; the fork shares the first 20
    assert trunk.cache.length == 20 + NO_STOP.max_new_tokens - 1
    own = segments(fork.cache)[-1]
    assert own.shape[3] == 1 + NO_STOP.max_new_tokens - 1
    assert own.untyped_storage().nbytes() == own.numel() * own.element_size()


def test_cutting_a_prefix_copies_nothing():
    root = Prefix(None, torch.randn(2, 2, 2, 5, 4), version=0)
    leaf = Prefix(root, torch.randn(2, 2, 2, 3, 4), version=0)
    for length in range(1, 9):
        cut = leaf.cut(length)
        assert cut.length == length
        assert storages(cut) == storages(leaf)[: 1 if length <= 5 else 2]
    assert leaf.cut(0) is None
    assert leaf.cut(5) is root
    assert leaf.cut(8) is leaf


def test_a_prefix_cannot_be_cut_beyond_its_end():
    with pytest.raises(ValueError, match="5 tokens at 6"):
        Prefix(None, torch.randn(2, 2, 2, 5, 4), version=0).cut(6)


def test_a_prefix_is_written_out_in_order():
    data = torch.randn(2, 2, 2, 8, 4)
    leaf = Prefix(Prefix(None, data[:, :, :, :5], 0), data[:, :, :, 5:], 0)
    buffer = torch.zeros(2, 2, 2, 10, 4)
    leaf.copy_into(buffer)
    assert torch.equal(buffer[:, :, :, :8], data)
    assert not buffer[:, :, :, 8:].any()


def test_first_prompts_later_turns_and_siblings_mix_in_one_batch():
    model = tiny_model()
    engine = HFEngine(model)
    (trunk,) = engine.generate([Request([3] * 40, (1,))], NO_STOP)
    later = [3] * 40 + trunk.tokens + [8] * 9
    mixed = [Request([3] * 40, (2, k), trunk.cache) for k in range(3)]  # one token to run
    mixed += [Request(later, (3, k), trunk.cache) for k in range(3)]  # some
    mixed += [Request([k + 1] * 30, (4, k)) for k in range(3)]  # all
    for request, completion in zip(mixed, engine.generate(mixed, STOP)):
        check_against_oracle(model, request.tokens, completion)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=64).map(sorted), st.integers(1, 2000))
def test_contexts_run_together_are_alike_in_length_and_bounded(widths, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpo_train.engine.hf.PREFILL_TOKENS", limit)
        ranges = _alike(widths)
    assert [i for start, end in ranges for i in range(start, end)] == list(range(len(widths)))
    for start, end in ranges:
        assert 2 * widths[start] >= widths[end - 1]
        assert end - start == 1 or (end - start) * widths[end - 1] <= limit


@given(st.sets(st.integers(0, 30), min_size=1).map(sorted))
def test_rows_close_up_and_move_only_where_they_must(rows):
    closed = _closed_up(rows)
    assert sorted(closed) == rows
    assert all(row >= len(rows) for to, row in enumerate(closed) if to != row)


def test_the_model_is_left_in_the_mode_it_was_in():
    model = tiny_model().train()
    HFEngine(model).generate([Request([1], (1,))], NO_STOP)
    assert model.training


def test_refreshing_makes_old_caches_invalid():
    engine = HFEngine(tiny_model())
    (completion,) = engine.generate([Request([1, 2], (1,))], NO_STOP)
    engine.refresh(3)
    with pytest.raises(ValueError, match="drop caches when weights change"):
        engine.generate([Request([1, 2, 3], (1,), completion.cache)], NO_STOP)


SMALL = {
    "vocab_size": 48,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}


def test_a_sliding_window_is_refused():
    model = MistralForCausalLM(MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=8))
    with pytest.raises(ValueError, match="sliding"):
        HFEngine(model)


def test_attention_that_misreads_masks_is_refused():
    model = tiny_model()
    model.set_attn_implementation("eager")
    with pytest.raises(ValueError, match="set_attn_implementation"):
        HFEngine(model)


def test_a_model_that_scales_its_logits_is_refused():
    model = CohereForCausalLM(CohereConfig(**SMALL, logit_scale=0.0625))
    with pytest.raises(ValueError, match="after the output head"):
        HFEngine(model)


def test_positions_that_depend_on_the_longest_row_are_refused():
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 2,
        "long_factor": [2.0] * 2,
        "original_max_position_embeddings": 64,
    }
    with pytest.raises(ValueError, match="longrope"):
        HFEngine(tiny_model(rope_parameters=rope))
