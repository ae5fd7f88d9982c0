"""Any interleaving of step, snapshot, restore, fork, reset and close answers as "reset and replay" would.

The oracle (wrappers/fidelity/oracle.py) plays the history that each environment should have, on a new one.
"""

from __future__ import annotations

import gymnasium as gym
import pytest
from gymnasium.wrappers import FrameStackObservation, NormalizeReward, RecordEpisodeStatistics, TimeLimit
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import bpo_envs
from basket import Basket, Mute, RebuildingBasket
from wrappers import SnapshotEnv
from wrappers.fidelity.compare import Comparison
from wrappers.fidelity.oracle import Event, Oracle, RandomPolicy, perform, reset, step
from wrappers.target import Target

MOST_LIVE = 4
SEEDS = st.integers(0, 3)
PICK = st.integers(0, 2**16)


class Forest(RuleBasedStateMachine):
    """Up to four live environments and all their snapshots; `make` is set by a subclass."""

    make: staticmethod

    def __init__(self):
        super().__init__()
        self.oracle = Oracle(self.make, Comparison())
        self.live = []  # [environment, history, answer]
        self.snapshots = []  # (snapshot, history, answer)

    def check(self, place: int, history, answer: dict) -> None:
        self.oracle.fill([history])
        different = self.oracle.comparison.difference({key: history.answer[key] for key in answer}, answer)
        assert different is None, f"{different} after {[event.value for event in history.events()]}"
        self.live[place][1:] = history, answer

    def perform(self, place: int, event: Event) -> None:
        env, history, _ = self.live[place]
        self.check(place, history.child(event), perform(env, event, self.oracle.comparison))

    def place(self, pick: int) -> int:
        return pick % len(self.live)

    @initialize(seed=SEEDS)
    def begin(self, seed):
        self.live.append([self.make(), self.oracle.root, {}])
        self.perform(0, reset(seed))

    @rule(pick=PICK, chance=PICK)
    def step(self, pick, chance):
        place = self.place(pick)
        env, history, answer = self.live[place]
        if not history.over:
            action = RandomPolicy(chance)(answer.get("observation"), answer["info"], env)
            self.perform(place, step(action))

    @rule(pick=PICK, seed=st.none() | SEEDS)
    def reset(self, pick, seed):
        self.perform(self.place(pick), reset(seed))

    @rule(pick=PICK)
    def snapshot(self, pick):
        env, history, answer = self.live[self.place(pick)]
        self.snapshots.append((env.snapshot(), history, answer))

    @precondition(lambda self: self.snapshots)
    @rule(pick=PICK, which=PICK)
    def restore(self, pick, which):
        place = self.place(pick)
        snapshot, history, _ = self.snapshots[which % len(self.snapshots)]
        observation, info = self.live[place][0].restore(snapshot)
        self.check(place, history, self.oracle.comparison.answer(observation=observation, info=info))

    @precondition(lambda self: self.snapshots and len(self.live) < MOST_LIVE)
    @rule(which=PICK)
    def fork(self, which):
        self.live.append([self.make(), self.oracle.root, {}])
        self.restore(len(self.live) - 1, which)

    @precondition(lambda self: len(self.live) > 1)
    @rule(pick=PICK)
    def close(self, pick):
        self.live.pop(self.place(pick))[0].close()

    def teardown(self):
        for env, *_ in self.live:
            env.close()


def stack() -> SnapshotEnv:
    env = RecordEpisodeStatistics(TimeLimit(RebuildingBasket(), 6))
    return SnapshotEnv(FrameStackObservation(NormalizeReward(env), 2))


ENVIRONMENTS = {
    **{env_id: Target(env_id).make for env_id in bpo_envs.ENV_IDS},
    "basket": lambda: SnapshotEnv(Basket()),
    "stack": stack,
    "replay": lambda: SnapshotEnv(TimeLimit(Mute(), 8), strategy="replay"),
    "deepcopy": lambda: SnapshotEnv(TimeLimit(Mute(), 8), strategy="deepcopy"),
    "FrozenLake-v1": lambda: SnapshotEnv(gym.make("FrozenLake-v1")),
    "Blackjack-v1": lambda: SnapshotEnv(gym.make("Blackjack-v1")),
    "CartPole-v1": lambda: SnapshotEnv(gym.make("CartPole-v1")),
}


def run(make, examples: int, steps: int) -> None:
    machine = type("Machine", (Forest,), {"make": staticmethod(make)})
    machine.TestCase.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=(Phase.explicit, Phase.generate),  # shortening takes long; `python -m wrappers.check` does it
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=machine.TestCase.settings)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_interleaving_answers_as_reset_and_replay(name):
    run(ENVIRONMENTS[name], examples=12, steps=25)


@pytest.mark.full
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_many_long_interleavings(name):
    run(ENVIRONMENTS[name], examples=100, steps=60)


class Leaky(Basket):
    """Leaves its steps out of its state."""

    def get_state(self):
        return {"prices": self.prices, "steps": 0}


def test_a_leak_of_state_is_found():
    with pytest.raises(AssertionError, match=r"observation\[2\]"):
        run(lambda: SnapshotEnv(Leaky()), examples=300, steps=25)
