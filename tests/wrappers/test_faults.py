"""FaultInjector: each kind of fault changes outcomes, and is what the self-check looks for."""

from __future__ import annotations

import gymnasium as gym
import pytest

from basket import DROP, PAY, TAKE, Basket, same
from wrappers import FaultInjector, SnapshotEnv
from wrappers.faults import KINDS
from wrappers.fidelity import Settings
from wrappers.fidelity.worker import contained_checks
from wrappers.target import target_of

each_kind = pytest.mark.parametrize("kind", KINDS)


def injected(kind: str, rate: float, seed: int | None = 0) -> FaultInjector:
    return FaultInjector(gym.wrappers.TimeLimit(Basket(), 12), kind, rate, seed)


def continuation(env: gym.Env, snapshot=None) -> list:
    """What a restore and the same actions lead to, after the environment wandered off."""
    env.reset(seed=1)
    env.step(TAKE)
    env.step(TAKE)
    snapshot = env.snapshot()
    for action in (DROP, DROP, TAKE):
        env.step(action)
    return [env.restore(snapshot), *(env.step(action) for action in (TAKE, DROP, TAKE, PAY))]


@each_kind
def test_a_rate_of_nought_changes_nothing(kind):
    env = injected(kind, 0.0)
    assert same(continuation(env), continuation(SnapshotEnv(gym.wrappers.TimeLimit(Basket(), 12))))
    assert env.faults == 0


@each_kind
def test_a_rate_of_one_changes_outcomes(kind):
    env = injected(kind, 1.0)
    assert not same(continuation(env), continuation(injected(kind, 0.0)))
    assert env.faults > 0


@each_kind
def test_the_first_page_shown_after_a_restore_is_right(kind):
    """A fault must be felt later: what a restore shows could be compared on the spot."""
    assert same(continuation(injected(kind, 1.0))[0], continuation(injected(kind, 0.0))[0])


def test_what_each_fault_does():
    right = continuation(injected("late answer", 0.0))
    late = continuation(injected("late answer", 1.0))
    assert same(late[1][0], right[0][0]) and same([a[1:4] for a in late[1:]], [a[1:4] for a in right[1:]])
    chance = continuation(injected("generator", 1.0))
    assert len(chance[1][4]["prices"]) == 4 and not same(chance[1][0], right[1][0])
    lost = continuation(injected("lost write", 1.0))
    assert len(lost[1][4]["prices"]) == 3  # one of the things taken before is gone
    stale = continuation(injected("stale state", 1.0))
    assert stale[1][0][2] == 6  # it goes on counting where it had wandered to


@each_kind
def test_siblings_suffer_different_faults(kind):
    """The faults' randomness lies outside of snapshots."""
    env = injected(kind, 0.5)
    env.reset(seed=1)
    env.step(TAKE)
    snapshot = env.snapshot()
    answers = []
    for _ in range(20):
        env.restore(snapshot)
        answers.append([env.step(TAKE), env.step(TAKE)])
        env.step(DROP)
    distinct = [a for i, a in enumerate(answers) if not any(same(a, b) for b in answers[:i])]
    assert len(distinct) > 1 and 0 < env.faults < 40


@each_kind
def test_the_self_check_finds_it(kind):
    check = "dirty round trip" if kind in ("generator", "stale state") else "round trip"
    target = target_of(lambda: injected(kind, 0.9, seed=None), {}, (), "auto")
    found = contained_checks(target, Settings(episodes=4, budget=0.2), [check])[check]
    assert not found["passed"], found["detail"]


def test_its_snapshots_are_those_of_the_environment():
    plain = SnapshotEnv(gym.wrappers.TimeLimit(Basket(), 12))
    plain.reset(seed=3)
    injected("generator", 0.0).restore(plain.snapshot())


@pytest.mark.parametrize(("kind", "rate"), [("gremlins", 0.5), ("generator", 1.5)])
def test_nonsense_is_refused(kind, rate):
    with pytest.raises(ValueError, match="expected"):
        injected(kind, rate)
