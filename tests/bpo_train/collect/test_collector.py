"""The collector on the real shop: the shape of its trees, and that what they hold is what happened."""

from __future__ import annotations

from collections import Counter

import pytest

from bpo_train.collect.collector import GrowthOptions
from bpo_train.collect.entropy import decision_entropy
from bpo_train.collect.environment import EnvironmentOptions
from bpo_train.collect.schedule import action_starts
from bpo_train.engine import Sampling
from bpo_train.engine.hf import HFEngine
from bpo_train.policy import FormatOptions, make_format
from rollouts import (
    FORMAT,
    SAMPLING,
    TOKENIZER,
    ScriptedEngine,
    first_tasks,
    make_collector,
    outline,
    pool_of,
    replay,
    shop,
)
from tiny_models import CHATML, chat_tokenizer, tiny_model

SHOP = shop()
KEY = (1, 2, 3)
SCHEDULES = {
    "entropy": {"branch_points": 2, "siblings": 3},
    "lowest-entropy": {"branch_points": 2, "siblings": 3},
    "random": {"branch_points": 2, "siblings": 3},
    "entropy-threshold": {"branch_points": 2, "siblings": 3, "root": True},
    "equal": {"branch_points": 2, "siblings": 3, "decisions": (1, 3)},
    "hazard": {"branch_points": 2, "siblings": 3, "rate": 0.5},
    "root": {"branch_points": 1, "siblings": 5},
}  # all of N = 5 returns
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


@pytest.fixture(scope="module")
def pool():
    made = pool_of(SHOP)
    yield made
    made.close()


@pytest.fixture(scope="module")
def tasks():
    return first_tasks(SHOP, 8)


def collect(pool, tasks, schedule="", engine=None, key=KEY, **settings):
    options = SCHEDULES.get(schedule, {}) | settings
    return make_collector(engine or ScriptedEngine(), pool, schedule, **options).collect(tasks, key)


# The shape of a tree


@every_schedule
def test_a_tree_has_n_returns_whatever_its_backbone(pool, tasks, schedule):
    for tree in collect(pool, tasks, schedule):
        assert tree.returns == 5
        assert all(branch.decisions and branch.ended for branch in tree.branches)


@every_schedule
def test_siblings_fork_from_the_backbone_where_their_branch_point_lies(pool, tasks, schedule):
    for tree in collect(pool, tasks, schedule):
        assert sorted(s for p in tree.branch_points for s in p.siblings) == list(range(1, tree.returns))
        for point in tree.branch_points:
            assert point.branch == 0
            assert {tree.branches[s].fork for s in point.siblings} == {point.depth}
            assert {tree.branches[s].parent for s in point.siblings} == {0}
            if point.scheduled:
                assert len(point.siblings) == SCHEDULES[schedule]["siblings"] - 1


@every_schedule
def test_only_what_found_no_branch_point_becomes_extra_backbones(pool, tasks, schedule):
    for tree in collect(pool, tasks, schedule):
        scheduled = [p for p in tree.branch_points if p.scheduled]
        extras = [p for p in tree.branch_points if not p.scheduled]
        spent = sum(len(p.siblings) for p in scheduled)
        assert [(p.depth, len(p.siblings)) for p in extras] == ([(0, 4 - spent)] if spent < 4 else [])


def test_without_filling_trees_keep_what_they_found(pool, tasks):
    growth = GrowthOptions(100_000, fill=False)
    trees = collect(pool, tasks, "equal", growth=growth)
    for tree in trees:
        found = [d for d in (1, 3) if d < tree.backbone.end]
        assert [p.depth for p in tree.branch_points] == found
        assert tree.returns == 1 + 2 * len(found)
    assert len({tree.returns for tree in trees}) > 1


def test_entropy_branches_at_the_backbones_highest(pool, tasks):
    for tree in collect(pool, tasks, "entropy", measure="max"):
        entropies = [decision_entropy(d, "max") for d in tree.backbone.decisions]
        highest = sorted(sorted(range(len(entropies)), key=lambda t: -entropies[t])[:2])
        assert [p.depth for p in tree.branch_points if p.scheduled] == highest


def test_equal_branches_at_its_decisions(pool, tasks):
    for tree in collect(pool, tasks, "equal"):
        depths = [p.depth for p in tree.branch_points if p.scheduled]
        assert depths == [d for d in (1, 3) if d < tree.backbone.end]


def test_root_makes_independent_rollouts(pool, tasks):
    for tree in collect(pool, tasks, "root"):
        assert [(p.depth, len(p.siblings), p.scheduled) for p in tree.branch_points] == [(0, 4, True)]


def test_a_first_threshold_lets_every_decision_qualify(pool, tasks):
    for tree in collect(pool, tasks, "entropy-threshold"):
        scheduled = [p.depth for p in tree.branch_points if p.scheduled]
        assert scheduled == list(range(min(2, tree.backbone.end)))


@pytest.mark.parametrize("unit", ["generated", "context"])
@pytest.mark.parametrize("schedule", ["entropy", "entropy-threshold"])
def test_branch_points_keep_their_distance_in_tokens(pool, tasks, schedule, unit):
    spacing = {"generated": 120, "context": 600}[unit]
    kept = 0
    for tree in collect(pool, tasks, schedule, spacing=spacing, spacing_unit=unit):
        starts = action_starts(tree.backbone, unit)
        depths = [p.depth for p in tree.branch_points if p.scheduled]
        if len(depths) == 2:
            assert starts[depths[1]] - starts[depths[0]] >= spacing
            kept += 1
    assert 0 < kept < len(tasks)


def test_no_schedule_and_no_branch_points_make_backbones_only(pool, tasks):
    for tree in [*collect(pool, tasks), *collect(pool, tasks, "entropy", branch_points=0)]:
        assert tree.returns == 1
        assert tree.branch_points == []


def test_fresh_siblings_are_k(pool, tasks):
    for tree in collect(pool, tasks, "entropy", fresh_siblings=True):
        assert tree.returns == 1 + 2 * 3
        assert all(len(p.siblings) == 3 for p in tree.branch_points if p.scheduled)


def test_trees_know_their_task_and_their_weights(pool, tasks):
    engine = ScriptedEngine(version=7)
    trees = collect(pool, tasks, "entropy", engine)
    assert [tree.task_id for tree in trees] == [task.id for task in tasks]
    assert {tree.weight_version for tree in trees} == {7}


# What a tree holds is what happened


@every_schedule
def test_every_path_can_be_walked_again_in_a_fresh_environment(pool, tasks, schedule):
    for task, tree in zip(tasks, collect(pool, tasks, schedule)):
        replay(tree, task, SHOP, FORMAT)


def test_full_pages_too():
    full = shop(compact=False, steps=8)
    tasks, pool = first_tasks(full, 3), pool_of(full)
    trees = collect(pool, tasks, "entropy")
    for task, tree in zip(tasks, trees):
        replay(tree, task, full, FORMAT)
    assert {d.text.split("[")[0] for t in trees for b in t.branches for d in b.decisions} >= {
        "search",
        "click",
    }


def test_success_weight_mixes_the_last_reward(pool, tasks):
    weighted = GrowthOptions(100_000, success_weight=0.25)
    for task, tree in zip(tasks, collect(pool, tasks, "root", growth=weighted)):
        replay(tree, task, SHOP, FORMAT, weight=0.25)


def rigged(text: str, key: tuple[int, ...]) -> str:
    """Search, open the first product, buy it: a purchase that scores."""
    turns = text.count("\n>") - 1
    return ["search " + text.split("\n")[0][6:], "open 1", "buy"][turns]


def test_a_purchase_pays_and_ends_the_episode(pool, tasks):
    (tree,) = collect(pool, tasks[:1], engine=ScriptedEngine(rigged))
    assert [d.reward for d in tree.backbone.decisions][:2] == [0.0, 0.0]
    assert tree.backbone.decisions[2].reward == tree.backbone.score > 0
    assert tree.backbone.ended == "terminated"


@every_schedule
def test_rows_are_the_tokens_that_the_engine_was_given_and_gave(pool, tasks, schedule):
    # token in, token out: nothing is rendered or tokenised again
    engine = ScriptedEngine()
    trees = collect(pool, tasks, schedule, engine)
    asked = {request.key: request.tokens + completion.tokens for request, completion in engine.asked}
    for number, tree in enumerate(trees):
        for index, branch in enumerate(tree.branches):
            assert tree.row(index) == asked[(*KEY, number, index, branch.end - 1)]


@every_schedule
def test_a_siblings_first_request_is_the_backbones_at_the_branch_point(pool, tasks, schedule):
    engine = ScriptedEngine()
    trees = collect(pool, tasks, schedule, engine)
    asked = {request.key: request for request, _ in engine.asked}
    for number, tree in enumerate(trees):
        for point in tree.branch_points:
            for sibling in point.siblings:
                first = asked[(*KEY, number, sibling, point.depth)]
                assert first.tokens == asked[(*KEY, number, 0, point.depth)].tokens
                assert first.cache is not None  # the engine has checked that it covers a prefix


def test_every_request_has_a_random_stream_of_its_own(pool, tasks):
    engine = ScriptedEngine()
    for number in range(2):
        collect(pool, tasks, "entropy", engine, key=(9, 9, number))
    assert max(Counter(request.key for request, _ in engine.asked).values()) == 1


def test_behaviour_is_recorded_as_the_engine_told_it(pool, tasks):
    engine = ScriptedEngine()
    (tree,) = collect(pool, tasks[:1], "entropy", engine)
    told = {request.key: completion for request, completion in engine.asked}
    for index, branch in enumerate(tree.branches):
        for offset, decision in enumerate(branch.decisions):
            completion = told[(*KEY, 0, index, branch.fork + offset)]
            assert decision.action == completion.tokens
            assert decision.logprobs == completion.logprobs
            assert decision.entropies == completion.entropies


# Independence of batching


def tiny_engine(max_batch: int = 64) -> HFEngine:
    return HFEngine(tiny_model(vocabulary=len(TOKENIZER), window=4096), max_batch)


PLAIN = make_format(TOKENIZER, FormatOptions(max_observation_tokens=60))
SHORT = Sampling(PLAIN.stop_ids, max_new_tokens=8)
SMALL = {"form": PLAIN, "sampling": SHORT, "growth": GrowthOptions(2048)}


@pytest.mark.parametrize("schedule", ["entropy", "entropy-threshold"])
def test_the_same_key_grows_the_same_trees_whatever_the_engines_batch(pool, tasks, schedule):
    one, *others = (collect(pool, tasks[:3], schedule, tiny_engine(batch), **SMALL) for batch in (64, 1, 5))
    for other in others:
        assert list(map(outline, one)) == list(map(outline, other))


def test_a_tree_does_not_depend_on_the_other_prompts(pool, tasks):
    together = collect(pool, tasks[:4], "entropy", tiny_engine(), **SMALL)
    alone = collect(pool, tasks[:1], "entropy", tiny_engine(), **SMALL)
    assert outline(together[0]) == outline(alone[0])


def test_another_key_grows_another_tree(pool, tasks):
    one, other = (collect(pool, tasks[:1], "root", tiny_engine(), key=key, **SMALL) for key in ((1,), (2,)))
    assert outline(one[0]) != outline(other[0])


def test_an_environment_that_throws_dice_repeats_itself_too():
    lake = EnvironmentOptions("bpo/FrozenLakeText-v0", {"is_slippery": True}, (), 20)
    pool = pool_of(lake)

    def walks(key: tuple[int, ...]) -> list[list[str]]:
        """Where a walker who always goes right comes along: four rollouts of each of two prompts."""
        engine = ScriptedEngine(lambda text, key: "right")
        made = {"branch_points": 1, "siblings": 4, "decisions": (99,)}  # never reached: extra backbones
        trees = collect(pool, first_tasks(lake, 1) * 2, "equal", engine, key, **made)
        return [[TOKENIZER.decode(tree.row(i)) for i in range(4)] for tree in trees]

    one = walks((1,))
    assert walks((1,)) == one
    assert walks((2,)) != one
    assert len({walk for tree in one for walk in tree}) > 4  # each rollout from the root has its own dice
    pool.close()


@pytest.mark.parametrize("schedule", ["entropy", "root"])
def test_a_real_policys_trees_can_be_walked_again(pool, tasks, schedule):
    trees = collect(pool, tasks[:3], schedule, tiny_engine(), **SMALL)
    for task, tree in zip(tasks, trees):
        replay(tree, task, SHOP, PLAIN)
    cut = [d.cut for tree in trees for b in tree.branches for d in b.decisions]
    assert any(cut)  # a random policy seldom ends a line within 8 tokens


def test_chat_conversations_can_be_walked_again(pool, tasks):
    tokenizer = chat_tokenizer(CHATML)
    form = make_format(tokenizer, FormatOptions(format="chat", max_observation_tokens=60))
    engine = HFEngine(tiny_model(vocabulary=len(tokenizer), window=4096))
    sampling = Sampling(form.stop_ids, max_new_tokens=8)
    growth = GrowthOptions(2048)
    for task, tree in zip(
        tasks, collect(pool, tasks[:2], "entropy", engine, form=form, sampling=sampling, growth=growth)
    ):
        replay(tree, task, SHOP, form)


# Ends


def test_the_step_limit_ends_an_episode(pool, tasks):
    engine = ScriptedEngine(lambda text, key: "frobnicate")
    for tree in collect(pool, tasks, engine=engine):
        assert tree.backbone.ended == "step_limit"
        assert tree.backbone.end == 6


def test_no_episode_passes_the_step_limit(pool, tasks):
    for tree in collect(pool, tasks, "entropy"):
        for branch in tree.branches:
            assert branch.end == 6 if branch.ended == "step_limit" else branch.end <= 6


def test_a_full_context_ends_an_episode(pool, tasks):
    engine, limit = ScriptedEngine(), 1000
    trees = collect(pool, tasks, "entropy", engine, growth=GrowthOptions(limit))
    assert all(len(request.tokens) + SAMPLING.max_new_tokens <= limit for request, _ in engine.asked)
    ends = {branch.ended for tree in trees for branch in tree.branches}
    assert "context" in ends
    for task, tree in zip(tasks, trees):
        replay(tree, task, SHOP, FORMAT)


def test_a_prompt_that_does_not_fit_is_refused(pool, tasks):
    with pytest.raises(ValueError, match="raise context_limit or lower max_observation_tokens"):
        collect(pool, tasks, growth=GrowthOptions(210))


# What is given back


@every_schedule
def test_nothing_is_left_behind(tasks, schedule):
    pool = pool_of(SHOP)
    collect(pool, tasks[:3], schedule)
    assert pool.live_snapshots == 0
    assert sorted(pool._free) == list(range(len(pool._envs)))  # each slot given back once
    pool.close()


@pytest.mark.parametrize(("schedule", "peak"), [("equal", 1), ("root", 1), ("entropy", None)])
def test_a_predictable_schedule_snapshots_only_where_it_branches(tasks, schedule, peak):
    pool = pool_of(SHOP)
    (tree,) = collect(pool, tasks[:1], schedule)
    if peak is None:  # every decision of the backbone until it has chosen
        assert pool.meters.snapshots == pool.meters.peak_live_snapshots == tree.backbone.end
    else:
        assert pool.meters.peak_live_snapshots == peak
        assert pool.meters.snapshots == len([p for p in tree.branch_points if p.scheduled])
    pool.close()


def test_siblings_replay_nothing(tasks):
    pool = pool_of(SHOP)
    trees = collect(pool, tasks, "entropy")
    assert pool.meters.steps == sum(len(b.decisions) for t in trees for b in t.branches)
    pool.close()


# The picture


def test_a_collected_tree_is_readable(pool, tasks):
    def script(text: str, key: tuple[int, ...]) -> str:
        sibling, depth = key[-2:]
        query = "search button tufted sofa beds with storage chaise"
        return [query, "open 2" if sibling else "open 1", "buy"][depth]

    made = {"branch_points": 1, "siblings": 2, "decisions": (1,)}
    (tree,) = collect(pool, tasks[:1], "equal", ScriptedEngine(script), **made)
    assert str(tree).splitlines() == [
        f"tree of synthetic-0: 2 returns, {tree.stored_tokens()} tokens stored once "
        f"({tree.row_tokens()} as rows)",
        "backbone: return 1.000, score 1.000, won, terminated",
        "   0 'search button tufted sofa beds with storage chaise'  H=1.51..3.00",
        "   1 'open 1'  H=1.90..2.50",
        "     | branch 1: return 0.667, score 0.667, terminated",
        "     |    1 'open 2'  H=1.46..2.73",
        "     |    2 'buy'  H=1.93..2.99  r=+0.667",
        "   2 'buy'  H=0.82..2.57  r=+1.000",
    ]


def test_the_scripted_agents_choices_vary(pool, tasks):
    trees = collect(pool, tasks, "root")
    verbs = {d.text.split()[0] for tree in trees for b in tree.branches for d in b.decisions}
    assert verbs >= {"search", "open", "buy", "back", "frobnicate"}
