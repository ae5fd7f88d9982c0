"""The sentinel: a restore that is not faithful is found, told of, and its tree never learned from."""

from __future__ import annotations

import pytest

from bpo_train.collect.collector import GrowthOptions
from bpo_train.collect.environment import make_environment
from bpo_train.collect.pool import InProcessPool
from rollouts import ScriptedEngine, first_tasks, make_collector, outline, pool_of, shop
from wrappers.faults import FaultInjector

SHOP = shop()
ALWAYS = GrowthOptions(context_limit=100_000, sentinel=1.0)
schedules = pytest.mark.parametrize(
    ("schedule", "options"),
    [("entropy", {}), ("equal", {"decisions": (1, 3)}), ("entropy-threshold", {"root": True})],
)


def collector(pool, schedule, growth=ALWAYS, **options):
    return make_collector(ScriptedEngine(), pool, schedule, growth=growth, siblings=3, **options)


@schedules
def test_a_faithful_environment_passes_and_its_trees_are_unchanged(schedule, options):
    tasks, pool = first_tasks(SHOP, 6), pool_of(SHOP)
    watched = collector(pool, schedule, **options)
    trees = watched.collect(tasks, (1,))
    plain = collector(pool, schedule, GrowthOptions(context_limit=100_000), **options).collect(tasks, (1,))
    assert [outline(tree) for tree in trees] == [outline(tree) for tree in plain]
    assert watched.meters.mismatches == []
    scheduled = sum(point.scheduled for tree in trees for point in tree.branch_points)
    assert watched.meters.sentinel_checks == scheduled > 0
    assert pool.live_snapshots == 0
    pool.close()


@schedules
def test_trees_with_an_unfaithful_restore_are_left_out(schedule, options):
    tasks = first_tasks(SHOP, 6)
    pool = InProcessPool(lambda: FaultInjector(make_environment(SHOP), "late answer", rate=1.0, seed=0))
    watched = collector(pool, schedule, **options)
    trees = watched.collect(tasks, (1,))
    found = watched.meters.mismatches
    assert found
    assert {tree.task_id for tree in trees} == {t.id for t in tasks} - {m.task_id for m in found}
    assert all(m.found != m.expected and len(m.actions) == m.depth + 1 for m in found)
    assert pool.live_snapshots == 0
    pool.close()


def test_a_share_of_branch_points_is_watched():
    tasks, pool = first_tasks(SHOP, 40), pool_of(SHOP)
    watched = collector(pool, "entropy", GrowthOptions(context_limit=100_000, sentinel=0.25))
    points = sum(p.scheduled for tree in watched.collect(tasks, (2,)) for p in tree.branch_points)
    assert 0.1 * points < watched.meters.sentinel_checks < 0.45 * points
    pool.close()
