"""A snapshot as a value: immutable, serialisable, damaged ones refused, resources given back once."""

from __future__ import annotations

import gc
import pickle
import random

import gymnasium as gym
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from basket import TAKE, Basket
from wrappers import Snapshot, SnapshotEnv, SnapshotError, codec


@pytest.fixture(scope="module")
def env() -> SnapshotEnv:
    env = gym.make("test/Basket-v0")
    env.reset(seed=0)
    env.step(TAKE)
    return env


@pytest.fixture(scope="module")
def snapshot(env) -> Snapshot:
    return env.snapshot()


def signed(body: bytes) -> bytes:
    """The bytes of a snapshot whose digest is right, whatever its content."""
    return b"SNAP\x01" + codec.digest(body) + body


def test_bytes_come_back_as_an_equal_snapshot(snapshot):
    again = Snapshot.from_bytes(snapshot.to_bytes())
    assert again.to_bytes() == snapshot.to_bytes()
    assert (again.origin, again.digest, again.size) == (snapshot.origin, snapshot.digest, snapshot.size)
    assert again.fingerprint == snapshot.fingerprint


def test_serialise_restore_serialise_is_a_fixed_point(env, snapshot):
    env.restore(Snapshot.from_bytes(snapshot.to_bytes()))
    assert env.snapshot().to_bytes() == snapshot.to_bytes()


def test_size_is_the_number_of_bytes(snapshot):
    assert snapshot.size == len(snapshot.to_bytes())


@pytest.mark.parametrize("name", ["env_id", "configuration", "capability", "digest", "anything"])
def test_a_snapshot_cannot_be_changed(snapshot, name):
    with pytest.raises(AttributeError):
        setattr(snapshot, name, "other")


def test_pickling_goes_by_bytes_so_that_worker_processes_can_pass_snapshots(snapshot):
    assert pickle.loads(pickle.dumps(snapshot)).to_bytes() == snapshot.to_bytes()


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_and_truncated_bytes_are_refused(snapshot, data):
    damaged = bytearray(snapshot.to_bytes())
    if data.draw(st.booleans()):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    else:
        del damaged[data.draw(st.integers(0, len(damaged) - 1)) :]
    with pytest.raises(SnapshotError):
        Snapshot.from_bytes(bytes(damaged))


def mutated(body: bytes, chance: random.Random) -> bytes:
    """`body` with one to three bytes changed, inserted or cut."""
    found = bytearray(body)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(found))
        if chance.random() < 0.5:
            found[place] = chance.randrange(256)
        else:
            found[place : place + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 4))
    return bytes(found)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of enormous prices
@pytest.mark.parametrize("number", [5_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_mutations_with_a_right_digest_are_refused_or_make_a_running_environment(env, snapshot, number):
    body, chance, refused = snapshot.to_bytes()[21:], random.Random(number), 0
    for _ in range(number):
        try:
            env.restore(Snapshot.from_bytes(signed(mutated(body, chance))))
        except SnapshotError:
            refused += 1
        else:
            env.snapshot().to_bytes()
            env.step(TAKE)
    assert refused > number / 2


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "not a snapshot"),
        (b"PK\x03\x04 something else entirely", "not a snapshot"),
        (b"SNAP\x63" + bytes(16), "schema version 99, this release reads 1"),
        (signed(b"?"), "malformed"),
        (signed(codec.encode(7)), "malformed"),
        (signed(codec.encode((("a", "b"), None))), "malformed"),
        (signed(codec.encode((("a", "b", 7), None))), "where it belongs"),
        (signed(codec.encode((("a", "b", "root"), None))), "where it belongs"),
    ],
)
def test_foreign_bytes_are_refused_with_a_reason(data, complaint):
    with pytest.raises(SnapshotError, match=complaint):
        Snapshot.from_bytes(data)


def test_a_closed_snapshot_is_not_restored(env):
    env.reset(seed=0)
    with env.snapshot() as snapshot:
        env.restore(snapshot)
    snapshot.close()
    with pytest.raises(SnapshotError, match="is closed"):
        env.restore(snapshot)
    assert "closed" in repr(snapshot)


class Layers(Basket):
    """Stands for a sandbox whose snapshots hold something outside of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.released: list[int] = []

    def release_state(self, state) -> None:
        self.released.append(state["steps"])


@pytest.fixture
def layered() -> SnapshotEnv:
    env = SnapshotEnv(Layers())
    env.reset(seed=0)
    return env


def test_what_a_snapshot_holds_is_given_back_once(layered):
    with layered.snapshot() as snapshot:
        assert layered.unwrapped.released == []
    snapshot.close()
    del snapshot
    gc.collect()
    assert layered.unwrapped.released == [0]


def test_what_a_forgotten_snapshot_holds_is_given_back_too(layered):
    snapshot = layered.snapshot()
    del snapshot
    gc.collect()
    assert layered.unwrapped.released == [0]
