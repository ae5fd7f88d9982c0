"""What any rollout engine must do, as a test class to inherit.

A subclass gives `make(model, max_batch)`: an engine around a copy of that model's weights (or the model
itself). The oracle is the model: one forward pass over the whole sequence, without cache, batch or padding.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from bpo_train.engine import Completion, Engine, Request, Sampling, uniforms
from tiny_models import MODELS, VOCABULARY, tiny_model

NO_STOP = Sampling(frozenset(), max_new_tokens=6)
STOP = Sampling(frozenset({5, 9, 17, 23, 31, 40}), max_new_tokens=8)
TOLERANCE = 1e-4


def contexts(count: int, seed: int = 0) -> list[list[int]]:
    """Random contexts of 1 to 24 tokens."""
    rng = np.random.default_rng(seed)
    return [rng.integers(VOCABULARY, size=rng.integers(1, 25)).tolist() for _ in range(count)]


def requests(count: int, seed: int = 0) -> list[Request]:
    return [Request(tokens, (seed, i)) for i, tokens in enumerate(contexts(count, seed))]


@torch.no_grad()
def oracle(model, context: list[int], action: list[int], temperature: float = 1.0) -> torch.Tensor:
    """Log-probs over the vocabulary at each action token, by a fresh forward pass: float[len(action), V]."""
    logits = model(torch.tensor([context + action])).logits[0, len(context) - 1 : -1]
    return torch.log_softmax(logits.float() / temperature, dim=-1)


def check_against_oracle(model, context: list[int], completion: Completion, temperature: float = 1.0) -> None:
    table = oracle(model, context, completion.tokens, temperature)
    chosen = table.gather(1, torch.tensor(completion.tokens)[:, None])[:, 0]
    assert completion.logprobs == pytest.approx(chosen.tolist(), abs=TOLERANCE)
    entropies = -(table.exp() * table).sum(-1)
    assert completion.entropies == pytest.approx(entropies.tolist(), abs=TOLERANCE)


def same(one: Completion, other: Completion) -> None:
    assert one.tokens == other.tokens
    assert one.stopped == other.stopped
    assert one.logprobs == pytest.approx(other.logprobs, abs=TOLERANCE)
    assert one.entropies == pytest.approx(other.entropies, abs=TOLERANCE)


class EngineConformance:
    """Inherit it, give `make`, and an engine is held to the seam."""

    def make(self, model: torch.nn.Module, max_batch: int = 64) -> Engine:
        raise NotImplementedError

    @pytest.fixture(params=MODELS)
    def model(self, request: pytest.FixtureRequest):
        return tiny_model(request.param)

    @pytest.fixture
    def llama(self):
        return tiny_model()

    # What is reported

    @pytest.mark.parametrize("temperature", [1.0, 0.7])
    def test_logprobs_and_entropies_equal_a_fresh_forward(self, model, temperature):
        sampling = Sampling(frozenset({5}), 6, temperature)
        for request, completion in zip(requests(9), self.make(model).generate(requests(9), sampling)):
            check_against_oracle(model, request.tokens, completion, temperature)

    def test_entropy_lies_between_zero_and_the_logarithm_of_the_vocabulary(self, llama):
        for completion in self.make(llama).generate(requests(9), NO_STOP):
            assert all(0 <= h <= math.log(VOCABULARY) for h in completion.entropies)

    def test_one_logprob_and_one_entropy_a_token(self, llama):
        for completion in self.make(llama).generate(requests(9), STOP):
            assert len(completion.tokens) == len(completion.logprobs) == len(completion.entropies)

    def test_completions_name_the_weight_version(self, llama):
        engine = self.make(llama)
        engine.load_weights([], version=7)
        assert [c.version for c in engine.generate(requests(2), NO_STOP)] == [7, 7]

    # Which tokens

    def test_a_token_is_drawn_by_inverting_the_cumulative_distribution(self, llama):
        request = requests(1)[0]
        (completion,) = self.make(llama).generate([request], NO_STOP)
        draws = uniforms(request.key, NO_STOP.max_new_tokens)
        cumulative = oracle(llama, request.tokens, completion.tokens).double().exp().cumsum(-1)
        for token, draw, row in zip(completion.tokens, draws, cumulative):
            assert (row[token - 1] if token else 0) - 1e-5 <= draw < row[token] + 1e-5

    @pytest.mark.parametrize("temperature", [1.0, 0.5])
    def test_frequencies_follow_the_softmax(self, llama, temperature):
        # 4,000 draws of one token: chi-square against the model's own distribution, 47 degrees of freedom;
        # 100 is beyond the 0.99999 quantile (96.0), and the draws are fixed by their keys.
        count, context = 4000, [3, 1, 4, 1, 5]
        drawn = self.make(llama, 500).generate(
            [Request(context, (11, i)) for i in range(count)], Sampling(frozenset(), 1, temperature)
        )
        seen = Counter(c.tokens[0] for c in drawn)
        expected = count * oracle(llama, context, [0], temperature)[0].exp()
        rare = expected < 5
        observed = torch.tensor([float(seen[i]) for i in range(VOCABULARY)])
        parts = [(observed[~rare], expected[~rare]), (observed[rare].sum(), expected[rare].sum())]
        assert sum(float(((o - e) ** 2 / e).sum()) for o, e in parts if e.sum() > 0) < 100

    def test_greedy_takes_the_most_probable_token(self, model):
        sampling = Sampling(frozenset(), 6, greedy=True)
        for request, completion in zip(requests(5), self.make(model).generate(requests(5), sampling)):
            best = oracle(model, request.tokens, completion.tokens).argmax(-1)
            assert completion.tokens == best.tolist()

    def test_greedy_reports_the_policys_own_logprobs(self, llama):
        sampling = Sampling(frozenset(), 6, greedy=True)
        for request, completion in zip(requests(5), self.make(llama).generate(requests(5), sampling)):
            check_against_oracle(llama, request.tokens, completion)

    # Where an action ends

    def test_an_action_ends_with_its_first_stop_token(self, llama):
        completions = self.make(llama).generate(requests(20), STOP)
        ended = [c for c in completions if c.stopped]
        assert len(ended) > 5  # else this test shows nothing
        for completion in ended:
            assert completion.tokens[-1] in STOP.stop_ids
            assert not set(completion.tokens[:-1]) & STOP.stop_ids

    def test_an_action_without_an_end_is_cut_at_the_limit(self, llama):
        for completion in self.make(llama).generate(requests(5), NO_STOP):
            assert not completion.stopped
            assert len(completion.tokens) == NO_STOP.max_new_tokens

    def test_a_stop_token_in_the_last_place_is_an_end(self, llama):
        everything = Sampling(frozenset(range(VOCABULARY)), max_new_tokens=1)
        (completion,) = self.make(llama).generate(requests(1), everything)
        assert completion.stopped

    # Independence of what else is in the batch

    @pytest.mark.parametrize("max_batch", [1, 3, 64])
    def test_results_do_not_depend_on_the_size_of_batches(self, model, max_batch):
        alone = [self.make(model, 1).generate([r], STOP)[0] for r in requests(10)]
        for one, other in zip(alone, self.make(model, max_batch).generate(requests(10), STOP)):
            same(one, other)

    def test_results_come_in_the_order_of_the_requests_whatever_it_is(self, llama):
        asked = requests(10)
        order = np.random.default_rng(1).permutation(10)
        plain = self.make(llama, 4).generate(asked, STOP)
        shuffled = self.make(llama, 4).generate([asked[i] for i in order], STOP)
        for position, i in enumerate(order):
            same(plain[i], shuffled[position])

    def test_equal_keys_draw_equal_tokens_and_others_do_not(self, llama):
        context = [3, 1, 4, 1, 5, 9]
        keys = [(1, 2), (1, 2), (1, 3), (2, 2)]
        one, again, *others = self.make(llama).generate([Request(context, k) for k in keys], NO_STOP)
        assert one.tokens == again.tokens
        assert all(one.tokens != other.tokens for other in others)

    def test_no_requests_give_no_completions(self, llama):
        assert self.make(llama).generate([], NO_STOP) == []

    def test_requests_are_left_as_they_were(self, llama):
        asked, before = requests(4), [list(r.tokens) for r in requests(4)]
        self.make(llama).generate(asked, STOP)
        assert [r.tokens for r in asked] == before

    # Caches

    def test_a_later_turn_with_a_cache_equals_one_without(self, model):
        engine = self.make(model, 4)
        asked = requests(9)
        first = engine.generate(asked, STOP)
        observations = contexts(9, seed=5)
        longer = [r.tokens + c.tokens + o for r, c, o in zip(asked, first, observations)]
        keyed = [(tokens, (2, i)) for i, tokens in enumerate(longer)]
        with_cache = engine.generate([Request(t, k, c.cache) for (t, k), c in zip(keyed, first)], STOP)
        without = engine.generate([Request(t, k) for t, k in keyed], STOP)
        for one, other in zip(with_cache, without):
            same(one, other)

    def test_caches_go_on_for_many_turns(self, llama):
        engine = self.make(llama)
        tokens, cache = [1, 2, 3], None
        for turn in range(8):
            (completion,) = engine.generate([Request(tokens, (3, turn), cache)], STOP)
            check_against_oracle(llama, tokens, completion)
            tokens, cache = tokens + completion.tokens + [turn, turn], completion.cache

    def test_siblings_from_a_cache_cut_at_the_branch_point_equal_fresh_ones(self, model):
        engine = self.make(model)
        row, starts, cache = [1, 2, 3], [], None
        for turn in range(4):
            starts.append(len(row))
            (completion,) = engine.generate([Request(row, (4, turn), cache)], STOP)
            row, cache = row + completion.tokens + [turn] * 3, completion.cache
        siblings = [(row[:start], (5, start, k)) for start in starts for k in range(3)]
        forked = engine.generate([Request(t, k, cache) for t, k in siblings], STOP)
        fresh = engine.generate([Request(t, k) for t, k in siblings], STOP)
        for one, other in zip(forked, fresh):
            same(one, other)

    def test_a_fork_of_a_fork_equals_a_fresh_one(self, llama):
        engine = self.make(llama)
        (trunk,) = engine.generate([Request([1, 2, 3], (1,))], NO_STOP)
        context = [1, 2, 3, *trunk.tokens[:3]]
        (fork,) = engine.generate([Request(context, (2,), trunk.cache)], NO_STOP)
        deeper = context + fork.tokens[:2]
        (one,) = engine.generate([Request(deeper, (3,), fork.cache)], NO_STOP)
        (other,) = engine.generate([Request(deeper, (3,))], NO_STOP)
        same(one, other)

    def test_a_cache_serves_any_number_of_requests_and_is_not_changed_by_them(self, llama):
        engine = self.make(llama)
        (trunk,) = engine.generate([Request([1, 2, 3], (1,))], NO_STOP)
        context = [1, 2, 3, *trunk.tokens, 7]
        (before,) = engine.generate([Request(context, (9,), trunk.cache)], NO_STOP)
        engine.generate([Request(context[:5], (k,), trunk.cache) for k in range(5)], STOP)
        (after,) = engine.generate([Request(context, (9,), trunk.cache)], NO_STOP)
        assert before.tokens == after.tokens
        assert before.logprobs == after.logprobs

    def test_a_cache_that_covers_the_whole_context_is_fine(self, llama):
        engine = self.make(llama)
        (trunk,) = engine.generate([Request([1, 2, 3], (1,))], NO_STOP)
        (again,) = engine.generate([Request([1, 2, 3], (1,), trunk.cache)], NO_STOP)
        same(trunk, again)

    # Weights

    def test_a_cache_of_an_older_version_is_refused(self, llama):
        engine = self.make(llama)
        (completion,) = engine.generate(requests(1), NO_STOP)
        engine.load_weights([], version=1)
        with pytest.raises(ValueError, match="version 0 was given to version 1"):
            engine.generate([Request(requests(1)[0].tokens, (1,), completion.cache)], NO_STOP)

    def test_new_weights_are_used(self, model):
        engine = self.make(model)
        other = tiny_model("-".join([model.config.model_type, "tied"]), seed=1)
        if not model.config.tie_word_embeddings:
            other = tiny_model("-".join([model.config.model_type, "untied"]), seed=1)
        engine.load_weights(other.state_dict().items(), version=1)  # of tied weights, by both names
        for request, completion in zip(requests(3), engine.generate(requests(3), NO_STOP)):
            check_against_oracle(other, request.tokens, completion)

    def test_weights_that_do_not_fit_are_refused(self, llama):
        name, tensor = next(iter(llama.state_dict().items()))
        with pytest.raises(ValueError, match="no such parameter"):
            self.make(llama).load_weights([("nonsense", tensor)], version=1)
        with pytest.raises(ValueError, match="the model has"):
            self.make(llama).load_weights([(name, tensor[:1])], version=1)

    # What is refused

    def test_an_empty_context_is_refused(self, llama):
        with pytest.raises(ValueError, match="no tokens"):
            self.make(llama).generate([Request([], (1,))], NO_STOP)

    def test_the_window_may_be_filled_but_not_passed(self):
        engine = self.make(tiny_model(window=32))
        engine.generate([Request([1] * (32 - NO_STOP.max_new_tokens), (1,))], NO_STOP)
        with pytest.raises(ValueError, match="window of 32"):
            engine.generate([Request([1] * (33 - NO_STOP.max_new_tokens), (1,))], NO_STOP)

    # Scoring given continuations

    @pytest.mark.parametrize("temperature", [1.0, 0.7])
    def test_scores_are_summed_logprobs_of_a_fresh_forward(self, model, temperature):
        asked = requests(4)
        continuations = [contexts(3, seed) for seed in range(4)]
        scores = self.make(model, max_batch=5).score(asked, continuations, temperature)
        for request, several, found in zip(asked, continuations, scores):
            for tokens, score in zip(several, found):
                table = oracle(model, request.tokens, tokens, temperature)
                expected = float(table.gather(1, torch.tensor(tokens)[:, None]).sum())
                assert score == pytest.approx(expected, abs=len(tokens) * TOLERANCE)

    def test_scores_from_a_cache_are_those_without_one(self, llama):
        engine = self.make(llama)
        plain = requests(4)
        cached = [Request(r.tokens, r.key, c.cache) for r, c in zip(plain, engine.generate(plain, NO_STOP))]
        continuations = [contexts(3, seed) for seed in range(4)]
        for one, other in zip(*(engine.score(asked, continuations, 1.0) for asked in (plain, cached))):
            assert one == pytest.approx(other, abs=1e-3)

    def test_a_continuation_without_tokens_has_no_score(self, llama):
        with pytest.raises(ValueError, match="no tokens"):
            self.make(llama).score(requests(1), [[[]]], 1.0)

    # Restricted drawing, for evaluation

    def test_top_k_draws_from_the_k_most_probable_tokens(self, llama):
        sampling = Sampling(frozenset(), 1, top_k=3)
        asked = [Request([7, 8], (1, i)) for i in range(200)]
        drawn = {c.tokens[0] for c in self.make(llama).generate(asked, sampling)}
        assert drawn == set(oracle(llama, [7, 8], [0])[0].topk(3).indices.tolist())

    def test_top_p_draws_from_the_fewest_tokens_that_hold_p(self, llama):
        probabilities, order = oracle(llama, [7, 8], [0])[0].exp().sort(descending=True)
        kept = int((probabilities.cumsum(0) < 0.05).sum()) + 1
        asked = [Request([7, 8], (2, i)) for i in range(400)]
        drawn = {c.tokens[0] for c in self.make(llama).generate(asked, Sampling(frozenset(), 1, top_p=0.05))}
        assert drawn == set(order[:kept].tolist())

    def test_forwarded_tokens_are_counted_without_padding(self, llama):
        engine = self.make(llama)
        before = engine.forwarded_tokens
        completions = engine.generate(asked := requests(9), STOP)
        run = sum(len(r.tokens) + len(c.tokens) - 1 for r, c in zip(asked, completions))
        assert engine.forwarded_tokens - before == pytest.approx(
            run, rel=0.2
        )  # a stopped row may run on a little
