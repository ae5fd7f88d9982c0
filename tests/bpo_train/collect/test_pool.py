"""The in-process pool: slots that are taken and given back, snapshots by handle, and what it counts."""

from __future__ import annotations

import pytest

from bpo_train.collect.environment import EnvironmentOptions, Task
from bpo_train.collect.pool import InProcessPool
from parrot import Parrot
from rollouts import first_tasks, pool_of, shop
from wrappers import SnapshotEnv

SHOP = shop(steps=4)


@pytest.fixture
def pool():
    made = pool_of(SHOP)
    yield made
    made.close()


@pytest.fixture(scope="module")
def tasks():
    return first_tasks(SHOP, 3)


def begin(pool, tasks):
    return pool.reset(tasks, range(len(tasks)))


def test_each_task_gets_a_slot_of_its_own(pool, tasks):
    started = begin(pool, tasks)
    assert len({slot for slot, _ in started}) == 3
    assert [seen.info["task_id"] for _, seen in started] == [task.id for task in tasks]
    assert all(seen.text.startswith("task: ") for _, seen in started)
    assert {seen.ended for _, seen in started} == {""}


def test_environments_are_seeded(pool, tasks):
    slots = [slot for slot, _ in pool.reset([tasks[0]] * 3, [5, 5, 6])]
    one, same, other = (pool._envs[slot].unwrapped.np_random.random() for slot in slots)
    assert one == same != other


def test_slots_are_stepped_independently(pool, tasks):
    slots = [slot for slot, _ in begin(pool, tasks[:2])]
    one, other = pool.step(slots, ["search lamp", "nonsense"])
    assert one.text.startswith("results:")
    assert other.text == "invalid\n"
    (again,) = pool.step(slots[:1], ["open 1"])
    assert again.text.startswith("item:")


def test_the_ends_of_episodes_have_names(pool, tasks):
    ((slot, _),) = begin(pool, tasks[:1])
    ends = [pool.step([slot], ["nonsense"])[0].ended for _ in range(4)]
    assert ends == ["", "", "", "step_limit"]
    ((slot, _),) = begin(pool, tasks[:1])
    ends = [pool.step([slot], [action])[0].ended for action in ("search lamp", "open 1", "buy")]
    assert ends == ["", "", "terminated"]


def test_a_snapshot_is_restored_any_number_of_times(pool, tasks):
    ((slot, _),) = begin(pool, tasks[:1])
    (before,) = pool.step([slot], ["search lamp"])
    handle = pool.snapshot(slot)
    pool.step([slot], ["open 1"])
    started = pool.restore([handle, handle], [1, 2])
    assert len({slot, *(s for s, _ in started)}) == 3
    for forked, seen in started:
        assert seen.text == before.text
        assert seen.info["steps_left"] == before.info["steps_left"]
        assert pool.step([forked], ["open 2"])[0].text.startswith("item:")


def test_a_snapshot_outlives_its_episode_and_its_slot(pool, tasks):
    ((slot, _),) = begin(pool, tasks[:1])
    handle = pool.snapshot(slot)
    pool.release(slot)
    begin(pool, tasks[1:2])
    ((_, seen),) = pool.restore([handle], [1])
    assert seen.info["task_id"] == tasks[0].id


def test_dropped_snapshots_are_gone(pool, tasks):
    ((slot, _),) = begin(pool, tasks[:1])
    handles = [pool.snapshot(slot) for _ in range(3)]
    assert pool.live_snapshots == 3
    assert pool.snapshot_bytes > 0
    for handle in handles:
        pool.drop(handle)
    assert pool.live_snapshots == pool.snapshot_bytes == 0
    with pytest.raises(KeyError):
        pool.restore(handles[:1], [1])


def test_released_slots_are_used_again(pool, tasks):
    for _ in range(5):
        for slot, _ in begin(pool, tasks):
            pool.release(slot)
    assert len(pool._envs) == 3


def test_meters_count(pool, tasks):
    ((slot, _),) = begin(pool, tasks[:1])
    pool.step([slot], ["search lamp"])
    pool.restore([pool.snapshot(slot), pool.snapshot(slot)], [1, 2])
    m = pool.meters
    assert (m.resets, m.steps, m.snapshots, m.restores, m.peak_live_snapshots) == (1, 1, 2, 2, 2)
    assert m.peak_snapshot_bytes == pool.snapshot_bytes
    assert min(m.step_seconds, m.snapshot_seconds, m.restore_seconds) > 0


def test_closing_frees_everything(pool, tasks):
    ((slot, _),) = begin(pool, tasks[:1])
    pool.snapshot(slot)
    pool.close()
    assert pool.live_snapshots == 0
    ((slot, seen),) = begin(pool, tasks[:1])  # and it can be used again
    assert seen.info["task_id"] == tasks[0].id


def test_a_policy_of_language_needs_observations_of_text():
    pool = InProcessPool(lambda: SnapshotEnv(Parrot(nested=True)))
    with pytest.raises(TypeError, match="observation is a dict; a language policy needs text"):
        begin(pool, [Task(0, "seed-0", seeded=True)])


def test_siblings_have_chances_of_their_own():
    # one snapshot of a slippery lake, one action: a shared generator would slide every sibling the same way
    lake = EnvironmentOptions("bpo/FrozenLakeText-v0", {"is_slippery": True})
    pool = pool_of(lake)
    ((slot, _),) = begin(pool, first_tasks(lake, 1))
    handle = pool.snapshot(slot)

    def texts(seeds):
        slots = [slot for slot, _ in pool.restore([handle] * len(seeds), seeds)]
        return [seen.text for seen in pool.step(slots, ["right"] * len(slots))]

    assert len(set(texts(range(20)))) > 1
    assert len(set(texts([7, 7, 7]))) == 1
    pool.close()
