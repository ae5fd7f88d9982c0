"""SnapshotEnv keeps the contract of docs/snapshots.md."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformObservation
from hypothesis import given, settings
from hypothesis import strategies as st

from basket import DROP, PAY, TAKE, Basket, Mute, RebuildingBasket, run, same
from wrappers import Snapshot, SnapshotEnv, SnapshotError

BOTH = ["test/Basket-v0", "test/RebuildingBasket-v0"]
each_env = pytest.mark.parametrize("env_id", BOTH)


def begun(env_id: str = BOTH[0], actions: tuple = (TAKE, TAKE, TAKE), seed: int = 1, **kwargs) -> SnapshotEnv:
    env = gym.make(env_id, **kwargs)
    assert isinstance(env, SnapshotEnv)
    env.reset(seed=seed)
    run(env, list(actions))
    return env


# --- going back ------------------------------------------------------------------------------------------


@each_env
@given(
    before=st.lists(st.integers(0, 2), max_size=12),
    astray=st.lists(st.integers(0, 2), max_size=12),
    after=st.lists(st.integers(0, 2), max_size=12),
    seed=st.integers(0, 5),
)
@settings(max_examples=40, deadline=None)
def test_after_going_astray_a_restored_environment_goes_on_as_if_nothing_had_happened(
    env_id, before, astray, after, seed
):
    env = begun(env_id, tuple(before), seed)
    snapshot = env.snapshot()
    expected = run(env, after)
    env.restore(snapshot)
    run(env, astray)
    env.restore(snapshot)
    assert same(run(env, after), expected)


@each_env
def test_restore_returns_the_observation_and_info_of_the_moment(env_id):
    env = gym.make(env_id)
    begun_with = env.reset(seed=1)
    at_reset = env.snapshot()
    observation, _, _, _, info = env.step(TAKE)
    later = env.snapshot()
    env.step(DROP)
    assert same(env.restore(later), (observation, info))
    assert same(env.restore(at_reset), begun_with)


@each_env
def test_one_snapshot_is_restored_any_number_of_times_and_never_changes(env_id):
    env = begun(env_id)
    snapshot = env.snapshot()
    written = snapshot.to_bytes()
    continuations = []
    for _ in range(10):
        env.restore(snapshot)
        continuations.append(run(env, [TAKE, DROP, TAKE, PAY]))
    assert all(same(one, continuations[0]) for one in continuations)
    assert env.restore(snapshot) and env.snapshot().to_bytes() == written


def test_taking_snapshots_leaves_no_trace():
    plain, watched = begun(), begun()
    expected = run(plain, [TAKE, DROP, TAKE, TAKE, PAY])
    found = []
    for action in [TAKE, DROP, TAKE, TAKE, PAY]:
        watched.snapshot().to_bytes()
        found.append(watched.step(action))
        watched.snapshot()
    assert same(found, expected)


@each_env
def test_what_the_caller_does_to_an_observation_or_info_does_not_reach_a_snapshot(env_id):
    env = begun(env_id)
    observation, _, _, _, info = env.step(TAKE)
    expected = observation.copy(), {"prices": list(info["prices"])}
    observation[:] = -1
    info.clear()
    snapshot = env.snapshot()
    restored = env.restore(snapshot)
    assert same(restored, expected)
    restored[0][:] = -1
    restored[1].clear()
    assert same(env.restore(snapshot), expected)


def test_the_state_is_copied_both_ways_so_that_plain_attributes_may_be_given_and_taken():
    env = begun()  # Basket hands out its live list, and takes the one it is given
    snapshot = env.snapshot()
    written = snapshot.to_bytes()
    env.restore(snapshot)
    env.step(TAKE)
    assert Snapshot.from_bytes(written).digest == snapshot.digest
    env.restore(snapshot)
    assert len(env.unwrapped.prices) == 4


def test_an_episode_that_has_ended_can_be_left():
    env = begun()
    snapshot = env.snapshot()
    assert env.step(PAY)[2]
    env.restore(snapshot)
    assert not env.step(TAKE)[2]


def test_the_generator_of_an_unseeded_environment_is_part_of_its_state():
    env = SnapshotEnv(Basket())
    env.reset()
    snapshot = env.snapshot()
    expected = run(env, [TAKE, TAKE])
    fork = SnapshotEnv(Basket())
    fork.restore(snapshot)
    assert same(run(fork, [TAKE, TAKE]), expected)


@pytest.mark.parametrize("name", ["PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM"])
def test_any_bit_generator_of_numpy_is_restored_into_an_instance_that_has_another(name):
    env = begun()
    env.unwrapped.np_random = np.random.Generator(getattr(np.random, name)(5))
    snapshot = Snapshot.from_bytes(env.snapshot().to_bytes())
    expected = run(env, [TAKE, TAKE])
    fork = begun(seed=2)
    fork.restore(snapshot)
    assert same(run(fork, [TAKE, TAKE]), expected)


# --- elsewhere -------------------------------------------------------------------------------------------


@each_env
def test_another_instance_of_the_same_configuration_takes_over_without_a_reset(env_id):
    env, fork = begun(env_id), gym.make(env_id)
    fork.restore(env.snapshot())
    assert same(run(fork, [TAKE, DROP, PAY]), run(env, [TAKE, DROP, PAY]))


def test_two_forks_stepped_in_turn_go_as_if_alone():
    env = begun()
    snapshot = env.snapshot()
    expected = run(env, [TAKE, TAKE, DROP])
    forks = [gym.make(BOTH[0]) for _ in range(2)]
    for fork in forks:
        fork.restore(snapshot)
    in_turn = [[fork.step(action) for fork in forks] for action in (TAKE, TAKE, DROP)]
    for index in range(2):
        assert same([answers[index] for answers in in_turn], expected)


CHILD = """
import sys, basket, gymnasium as gym
from wrappers import Snapshot
env = gym.make(sys.argv[1])
print(env.restore(Snapshot.from_bytes(sys.stdin.buffer.read())))
print(basket.run(env, [basket.TAKE, basket.DROP, basket.TAKE, basket.PAY]))
print(env.snapshot().digest)
"""


@each_env
def test_another_process_takes_over_from_bytes(env_id, root):
    env = begun(env_id)
    snapshot = env.snapshot()
    child = subprocess.run(
        [sys.executable, "-c", CHILD, env_id],
        input=snapshot.to_bytes(),
        capture_output=True,
        env={"PYTHONPATH": f"{root}:{root / 'tests' / 'helpers'}", "PYTHONHASHSEED": "7"},
        check=True,
    )
    here = [env.restore(snapshot), run(env, [TAKE, DROP, TAKE, PAY]), env.snapshot().digest]
    assert child.stdout.decode() == "".join(f"{line}\n" for line in here)


def test_equal_states_have_equal_digests_and_others_have_not():
    assert begun().snapshot().digest == begun().snapshot().digest
    assert begun().snapshot().digest != begun(seed=2).snapshot().digest


def test_another_configuration_is_refused_and_both_are_named():
    snapshot = begun().snapshot()
    with pytest.raises(SnapshotError, match=r"Basket\(\).*Basket\(tax=0\.5\)"):
        gym.make(BOTH[0], tax=0.5).restore(snapshot)
    with pytest.raises(SnapshotError, match=r"max_episode_steps=10.*max_episode_steps=20"):
        gym.make(BOTH[0], max_episode_steps=20).restore(snapshot)
    with pytest.raises(SnapshotError, match=r"test/Basket-v0.*test/RebuildingBasket-v0"):
        gym.make(BOTH[1]).restore(snapshot)


def test_naming_a_default_and_switching_off_the_checker_is_the_same_configuration():
    snapshot = begun().snapshot()
    gym.make(BOTH[0], tax=0.0, disable_env_checker=True).restore(snapshot)


def test_after_a_refusal_for_another_configuration_the_environment_goes_on():
    env = begun()
    with pytest.raises(SnapshotError):
        env.restore(begun(BOTH[1]).snapshot())
    env.step(TAKE)


# --- the step limit --------------------------------------------------------------------------------------


def test_a_limit_of_ten_restored_at_step_three_ends_the_episode_after_seven_more():
    env = begun()  # three steps
    snapshot = env.snapshot()
    run(env, [TAKE] * 4)
    env.restore(snapshot)
    assert len(run(env, [TAKE] * 10)) == 7


def test_restoring_the_base_alone_would_end_it_earlier():
    env = begun()  # why wrappers are part of a snapshot
    state = env.unwrapped.get_state()
    run(env, [TAKE] * 4)
    env.unwrapped.set_state(state)
    assert len(run(env, [TAKE] * 10)) == 3


def test_the_base_is_told_its_limit():
    assert gym.make(BOTH[0]).unwrapped.step_limit == 10
    assert gym.make(BOTH[0], max_episode_steps=4).unwrapped.step_limit == 4
    assert gym.make(BOTH[0], max_episode_steps=-1).unwrapped.step_limit is None
    assert SnapshotEnv(TimeLimit(TimeLimit(Basket(), 9), 6)).unwrapped.step_limit == 6


# --- stacks ----------------------------------------------------------------------------------------------


def test_an_inner_snapshot_env_has_no_part_in_state_or_configuration():
    snapshot = begun().snapshot()
    twice = SnapshotEnv(gym.make(BOTH[0]))
    twice.restore(snapshot)
    assert twice.snapshot().digest == snapshot.digest


def test_an_outer_snapshot_env_takes_over_the_strategy_of_the_inner_one():
    assert SnapshotEnv(SnapshotEnv(Mute(), strategy="replay")).capability == "replay"


def test_an_inner_snapshot_env_says_that_it_was_passed_over():
    inner = gym.make(BOTH[0])
    outer = SnapshotEnv(inner)
    outer.reset(seed=0)
    outer.restore(outer.snapshot())
    with pytest.raises(SnapshotError, match="outermost"):
        inner.snapshot()
    outer.step(TAKE)


def test_observations_travel_where_a_wrapper_changes_them_and_only_there():
    def double(env: gym.Env) -> gym.Env:
        return TransformObservation(env, lambda observation: observation * 2, env.observation_space)

    env = SnapshotEnv(double(RebuildingBasket()))
    env.reset(seed=0)
    observation, _, _, _, info = env.step(TAKE)
    assert same(env.restore(env.snapshot()), (observation, info))
    bare = SnapshotEnv(RebuildingBasket())
    bare.reset(seed=0)
    bare.step(TAKE)
    assert bare.snapshot().size < env.snapshot().size


def test_an_info_that_a_wrapper_completed_is_restored_complete():
    env = SnapshotEnv(RecordEpisodeStatistics(RebuildingBasket()))
    env.reset(seed=0)
    info = env.step(PAY)[4]
    assert env.restore(env.snapshot())[1]["episode"] == info["episode"]


# --- refusals --------------------------------------------------------------------------------------------


def test_before_the_first_reset_there_is_nothing_to_take():
    env = gym.make(BOTH[0])
    with pytest.raises(SnapshotError, match="no episode has begun"):
        env.snapshot()
    with pytest.raises(ResetNeeded, match="no episode has begun"):
        env.step(TAKE)


def test_only_a_snapshot_can_be_restored():
    env = begun()
    with pytest.raises(SnapshotError, match=r"got bytes .*Snapshot\.from_bytes"):
        env.restore(env.snapshot().to_bytes())


def test_content_that_the_environment_refuses_is_a_snapshot_error_and_the_environment_must_be_reset():
    env = begun()
    _, generator, stack, last = env.snapshot().payload()
    with pytest.raises(SnapshotError, match=r"refused the content.*no state of a basket"):
        env.restore(Snapshot(env.snapshot().origin, ({"prices": ["x"], "steps": 0}, generator, stack, last)))
    with pytest.raises(ResetNeeded, match="half-way"):
        env.step(TAKE)
    with pytest.raises(SnapshotError, match="half-way"):
        env.snapshot()
    env.reset(seed=0)
    env.step(TAKE)


@pytest.mark.parametrize("payload", [None, 7, (), (1, 2, 3), {}, ("a",) * 4, ([], [], [], [])])
def test_a_payload_of_another_shape_is_refused(payload):
    env = begun()
    with pytest.raises(SnapshotError):
        env.restore(Snapshot(env.snapshot().origin, payload))


@pytest.mark.parametrize(
    "generator",
    [
        None,
        {},
        ({"bit_generator": "os.system"}, 0),
        ({"bit_generator": "PCG64"}, 0),
        ({}, 0, 0),
        ("PCG64", 1),
    ],
)
def test_a_malformed_generator_is_refused(generator):
    env = begun()
    base, _, stack, last = env.snapshot().payload()
    with pytest.raises(SnapshotError, match="np_random is malformed"):
        env.restore(Snapshot(env.snapshot().origin, (base, generator, stack, last)))


def test_a_state_that_is_no_plain_data_is_refused_by_its_place():
    class Odd(Basket):
        def get_state(self):
            return {"prices": [object()]}

    env = SnapshotEnv(Odd())
    env.reset()
    with pytest.raises(SnapshotError, match=r"get_state\(\) of Odd: value\['prices'\]\[0\]: builtins.object"):
        env.snapshot()


def test_set_state_must_return_what_it_declares():
    class Forgetful(Basket):
        set_state_returns_observation = True

    env = SnapshotEnv(Forgetful())
    env.reset()
    with pytest.raises(SnapshotError, match="set_state returned None although"):
        env.restore(env.snapshot())

    class Odd(Basket):
        def set_state(self, state):
            return 3

    env = SnapshotEnv(Odd())
    env.reset()
    with pytest.raises(SnapshotError, match=r"must return None or \(observation, info\)"):
        env.restore(env.snapshot())


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match="'fork' is unknown, expected one of auto, state, replay, deepcopy"):
        SnapshotEnv(Basket(), strategy="fork")


# --- capabilities ----------------------------------------------------------------------------------------


def test_explicit_state_is_exact():
    assert gym.make(BOTH[0]).capability == "exact"
    assert begun().snapshot().capability == "exact"


def test_an_environment_with_no_state_to_give_runs_and_says_what_is_missing():
    env = SnapshotEnv(Mute())
    env.reset(seed=0)
    env.step(TAKE)
    assert env.capability == "none"
    with pytest.raises(SnapshotError, match=r"Mute has no get_state.*strategy='replay'"):
        env.snapshot()
    with pytest.raises(SnapshotError, match="Mute has no get_state"):
        SnapshotEnv(Mute(), strategy="state")


def test_a_set_state_of_other_arguments_is_not_taken_for_ours():
    class Physics(Basket):
        def set_state(self, position, velocity):
            raise AssertionError

    assert SnapshotEnv(Physics()).capability == "none"


def test_deep_copies_serve_this_process_only():
    env = SnapshotEnv(TimeLimit(Mute(), 10), strategy="deepcopy")
    env.reset(seed=3)
    env.step(TAKE)
    snapshot = env.snapshot()
    assert env.capability == snapshot.capability == "memory"
    expected = run(env, [TAKE] * 20)
    assert len(expected) == 9
    fork = SnapshotEnv(TimeLimit(Mute(), 10), strategy="deepcopy")
    for one in (env, fork, env):
        one.restore(snapshot)
        assert same(run(one, [TAKE] * 20), expected)
    for reader in (snapshot.to_bytes, lambda: snapshot.digest, lambda: snapshot.size):
        with pytest.raises(SnapshotError, match="has no bytes"):
            reader()


def test_an_environment_may_declare_that_its_state_lies_in_files():
    class Files(Basket):
        snapshot_capability = "filesystem"

    assert SnapshotEnv(Files()).capability == "filesystem"

    class Wrong(Basket):
        snapshot_capability = "perfect"

    with pytest.raises(SnapshotError, match=r"'perfect'.*expected 'exact' or 'filesystem'"):
        SnapshotEnv(Wrong(), strategy="state")
