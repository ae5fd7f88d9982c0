"""Branching by the entropy over the environment's list of actions, and what storage a large batch needs."""

from __future__ import annotations

import pytest
import torch

from bpo_train.collect.collector import GrowthOptions
from bpo_train.collect.environment import make_environment
from bpo_train.engine.hf import HFEngine
from rollouts import FORMAT, TOKENIZER, ScriptedEngine, first_tasks, make_collector, pool_of, shop
from tiny_models import tiny_model

SHOP = shop(steps=4)


@pytest.mark.parametrize("schedule", ["entropy", "entropy-threshold"])
def test_it_is_the_entropy_of_the_policy_over_the_listed_actions(schedule):
    model = tiny_model(vocabulary=len(TOKENIZER), window=16_384)
    (task,), pool = first_tasks(SHOP, 1), pool_of(SHOP)
    growing = make_collector(
        HFEngine(model),
        pool,
        schedule,
        growth=GrowthOptions(context_limit=16_000),
        branch_points=1,
        siblings=2,
        measure="actions",
    )
    (tree,) = growing.collect([task], (4,))
    assert all(d.action_entropy is None for branch in tree.branches[1:] for d in branch.decisions)
    # the oracle: score every listed action with a forward pass of its own
    env = make_environment(SHOP)
    _, info = env.reset(**task.reset_arguments(seed=0))
    scores = []
    first = tree.backbone.decisions[0]
    for action in info["admissible_actions"]:
        tokens = FORMAT.action_tokens(action)
        with torch.no_grad():
            logits = model(torch.tensor([first.context + tokens])).logits[0, len(first.context) - 1 : -1]
        scores.append(float(logits.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None]).sum()))
    p = torch.tensor(scores).double().softmax(0)
    assert first.action_entropy == pytest.approx(float(-(p * p.log()).sum()), abs=1e-3)
    env.close()
    pool.close()


@pytest.mark.parametrize("schedule", ["entropy", "equal"])
def test_a_batch_of_128_prompts_with_four_branch_points_leaves_nothing_behind(schedule):
    tasks, pool = first_tasks(shop(steps=6), 128), pool_of(shop(steps=6))
    options = {"decisions": (0, 1, 2, 3)} if schedule == "equal" else {}
    growing = make_collector(
        ScriptedEngine(lambda text, key: "next"), pool, schedule, branch_points=4, siblings=4, **options
    )
    trees = growing.collect(tasks, (5,))
    assert [tree.returns for tree in trees] == [13] * 128
    assert pool.live_snapshots == pool.snapshot_bytes == 0
    # a post-hoc schedule keeps every decision of every backbone until it has chosen, a predictable one none
    peak = pool.meters.peak_live_snapshots
    assert peak == 1 if schedule == "equal" else 128 * 5 < peak <= 128 * 6
    assert pool.meters.peak_snapshot_bytes >= peak * 100
    pool.close()
