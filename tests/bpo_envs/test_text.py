"""The text space, alone and inside Gymnasium's vector environments."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector.utils import (
    batch_space,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.text import Text
from parrot import Parrot


@pytest.fixture(scope="module")
def parrot():
    """Id of an environment registered with a string entry point, as third parties do."""
    gym.register("bpo-test/Parrot-v0", entry_point="parrot:Parrot", max_episode_steps=100)
    yield "bpo-test/Parrot-v0"
    gym.registry.pop("bpo-test/Parrot-v0")


def test_contains_any_str_up_to_the_length_counted_in_characters():
    space = Text(3)
    assert all(text in space for text in ("", "abc", "éèê", "漢字漢", "😀😀😀", "a\n\0"))
    assert "abcd" not in space
    assert np.str_("abc") in space  # a str: what iterating over a numpy array of strings gives


@pytest.mark.parametrize("thing", [b"abc", 1, None, ["a"], ("a",), np.array("a"), np.array(["a"])])
def test_contains_nothing_but_str(thing):
    assert thing not in Text(10)


def test_lone_surrogates_are_no_text():
    assert "a\ud800" not in Text(10)


@pytest.mark.parametrize("bound", [-1, 1.5, "3", None, True])
def test_wrong_bound_is_named(bound):
    with pytest.raises(ValueError, match="max_length"):
        Text(bound)


@given(st.integers(0, 100), st.integers(0, 2**32 - 1))
def test_samples_are_short_printable_members_and_seeded(max_length, seed):
    sample = Text(max_length, seed=seed).sample()
    assert sample in Text(max_length)
    assert sample.isprintable()
    assert len(sample) <= 32
    assert sample == Text(max_length, seed=seed).sample()
    assert type(sample) is str


def test_samples_vary_and_take_no_mask():
    space = Text(100, seed=0)
    assert len({space.sample() for _ in range(50)}) > 45
    with pytest.raises(ValueError, match="mask"):
        space.sample(mask=np.ones(3, dtype=np.int8))


def test_equality_repr_copies_and_json():
    assert Text(5, seed=1) == Text(5, seed=2)
    assert Text(5) != Text(6)
    assert Text(5) != gym.spaces.Text(5)
    assert repr(Text(5)) == "Text(max_length=5)"
    assert copy.deepcopy(Text(5)) == pickle.loads(pickle.dumps(Text(5))) == Text(5)
    texts = ["é", "漢", ""]
    assert Text(5).from_jsonable(Text(5).to_jsonable(texts)) == texts


def test_batched_space_holds_tuples_of_str():
    batched = batch_space(Text(5, seed=0), 3)
    assert ("a", "漢", "") in batched
    assert ("a", "b") not in batched
    assert ("a", "b", "toolong") not in batched
    assert batched.sample() in batched


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_shared_memory_returns_what_was_written(texts):
    space, n = Text(8), len(texts)
    memory = create_shared_memory(space, n=n)
    view = read_from_shared_memory(space, memory, n=n)
    assert tuple(view) == ("",) * n
    for i in range(n):
        write_to_shared_memory(space, i, "x" * 8, memory)
    for i, text in enumerate(texts):
        write_to_shared_memory(space, i, text, memory)
    assert copy.deepcopy(view) == tuple(texts)  # no rest of the longer text before it
    assert all(type(text) is str for text in view)


def test_shared_memory_of_the_space_that_holds_only_the_empty_text():
    memory = create_shared_memory(Text(0), n=2)
    write_to_shared_memory(Text(0), 1, "", memory)
    assert tuple(read_from_shared_memory(Text(0), memory, n=2)) == ("", "")


@pytest.mark.parametrize(
    ("value", "given"), [("a" * 9, "9 characters"), ("\udc80", "1 characters"), (b"a", "a bytes")]
)
def test_what_is_no_member_is_not_written(value, given):
    memory = create_shared_memory(Text(8), n=1)
    with pytest.raises(ValueError, match=f"environment 0 returned {given}.*max_length"):
        write_to_shared_memory(Text(8), 0, value, memory)


def test_check_env_is_clean(parrot, recwarn):
    check_env(gym.make(parrot).unwrapped, skip_render_check=True)
    assert [str(w.message) for w in recwarn if "Text" in str(w.message)] == []


TEXTS = ["é", "漢", "😀 emoji 👩‍🚀", "x" * 20_000, "😀" * 20_000, "", "plain"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_return_the_true_text(parrot, mode):
    envs = gym.make_vec(parrot, num_envs=2, vectorization_mode=mode)
    try:
        observations, _ = envs.reset(seed=0)
        assert observations == ("", "")
        for first, second in zip(TEXTS, reversed(TEXTS)):
            observations, *_ = envs.step((first, second))
            assert observations == (first, second)
            assert observations in envs.observation_space
        earlier = observations
        envs.step(np.array(["later", "on"]))
        assert earlier == (TEXTS[-1], TEXTS[0])  # what was returned does not change under the caller
    finally:
        envs.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_text_inside_a_dictionary(parrot, mode):
    envs = gym.make_vec(parrot, num_envs=2, vectorization_mode=mode, nested=True)
    try:
        envs.reset(seed=0)
        observations, *_ = envs.step(("漢", "é"))
        assert observations["said"] == ("漢", "é")
        assert observations["size"].tolist() == [1, 1]
    finally:
        envs.close()


@pytest.mark.parametrize("options", [{"context": "spawn"}, {"shared_memory": False}, {"copy": False}])
def test_async_in_its_other_ways(options):
    envs = AsyncVectorEnv([Parrot, Parrot], **options)
    try:
        envs.reset(seed=0)
        observations, *_ = envs.step(("漢", "é"))
        assert tuple(observations) == ("漢", "é")
    finally:
        envs.close()


@pytest.mark.filterwarnings("ignore:.*ERROR")  # Gymnasium reports the error as warnings, too
def test_text_beyond_the_bound_is_an_error_that_says_so():
    envs = AsyncVectorEnv([partial(Parrot, max_length=4)])
    try:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="returned 5 characters, not a text in Text\\(max_length=4\\)"):
            envs.step(("12345",))
    finally:
        envs.close()
