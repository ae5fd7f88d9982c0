"""Plain data survives exactly; everything else is refused, in writing and in reading."""

from __future__ import annotations

import contextlib
import math
import struct
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wrappers import CodecError, codec

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.unicode_string_dtypes(min_len=1, max_len=5),
    hnp.byte_string_dtypes(min_len=1, max_len=5),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.text(st.characters())
)
SCALARS = hnp.arrays(DTYPES, (1,)).map(lambda array: array[0])
KEYS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
PLAIN = st.recursive(
    st.one_of(ATOMS, ARRAYS, SCALARS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_leaves=15,
)


def identical(left, right) -> bool:
    """Same types, order and bits all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, dict):
        return identical(list(left.items()), list(right.items()))
    if isinstance(left, np.ndarray):
        return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
    if isinstance(left, (np.str_, np.bytes_)):
        return bool(left == right)
    if isinstance(left, np.generic):
        return left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    return bool(left == right)


@given(PLAIN)
def test_plain_data_comes_back_identical(value):
    assert identical(codec.decode(codec.encode(value)), value)


@given(PLAIN)
def test_a_copy_is_identical_and_encodes_alike(value):
    assert identical(codec.copy_plain(value), value)
    assert codec.encode(codec.copy_plain(value)) == codec.encode(value)


def test_a_copy_shares_nothing_that_can_change():
    value = {"list": [1, {"deep": np.zeros(2)}]}
    copied = codec.copy_plain(value)
    copied["list"][1]["deep"][0] = 7
    copied["list"].append(2)
    assert value["list"][1]["deep"][0] == 0
    assert len(value["list"]) == 2


def len_of(number: int) -> str:
    return f"{number.bit_length()} bits"


@pytest.mark.parametrize("number", [0, -1, 127, 128, -128, -129, 2**127, -(2**128), 10**5000], ids=len_of)
def test_integers_of_any_size(number):
    assert codec.decode(codec.encode(number)) == number


def test_negative_zero_infinity_and_the_bits_of_nan_survive():
    assert math.copysign(1, codec.decode(codec.encode(-0.0))) == -1
    assert codec.decode(codec.encode(-math.inf)) == -math.inf
    quiet = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
    assert struct.pack("<d", codec.decode(codec.encode(quiet))) == struct.pack("<Q", 0x7FF8000000000123)


def test_a_generator_of_numpy_continues_from_its_encoded_state():
    generator = np.random.default_rng(3)
    saved = codec.encode(dict(generator.bit_generator.state))
    expected = generator.random(5)
    other = np.random.default_rng()
    other.bit_generator.state = codec.decode(saved)
    assert np.array_equal(other.random(5), expected)


def test_the_order_of_a_dict_and_of_an_array_in_memory_are_kept():
    assert list(codec.decode(codec.encode({"b": 1, "a": 2}))) == ["b", "a"]
    assert codec.decode(codec.encode(np.zeros((2, 3), order="F"))).flags.f_contiguous


def test_zeros_at_the_end_of_a_numpy_text_are_kept():
    assert len(codec.decode(codec.encode(np.str_("a\0")))) == 2
    assert bytes(codec.decode(codec.encode(np.bytes_(b"a\0")))) == b"a\0"


def test_decoded_arrays_can_be_written_to():
    array = codec.decode(codec.encode(np.zeros(3)))
    array[0] = 1.0
    assert array[0] == 1.0


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, {2}]}, r"value\['a'\]\[1\]: builtins.set"),
        ((0, object()), r"value\[1\]: builtins.object"),
        ({frozenset(): 1}, "a key of value: builtins.frozenset"),
        (OrderedDict(), "collections.OrderedDict"),
        (np.array([None]), "dtype object"),
        (np.zeros(1, "i4,f8"), "numpy dtype"),
        (np.longdouble(1), "numpy dtype"),
        (np.ma.masked_array([1]), "MaskedArray"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_is_refused_by_its_place(value, place):
    for function in (codec.encode, codec.copy_plain):
        with pytest.raises(CodecError, match=place):
            function(value)


def test_data_that_contains_itself_is_refused():
    value: list = []
    value.append(value)
    for function in (codec.encode, codec.copy_plain):
        with pytest.raises(CodecError, match="contains itself"):
            function(value)


@given(PLAIN, st.data())
@settings(max_examples=300)
def test_mutated_bytes_are_refused_or_are_themselves_a_canonical_value(value, data):
    mutated = bytearray(codec.encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mutated)))
        kind = data.draw(st.sampled_from(["set", "insert", "cut"]))
        if kind == "insert":
            mutated.insert(place, data.draw(st.integers(0, 255)))
        elif kind == "cut":
            del mutated[place : place + data.draw(st.integers(1, 8))]
        elif place < len(mutated):
            mutated[place] = data.draw(st.integers(0, 255))
    try:
        decoded = codec.decode(bytes(mutated))
    except CodecError:
        return
    assert codec.encode(decoded) == bytes(mutated)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_random_bytes_raise_nothing_but_the_codec_error(data):
    with contextlib.suppress(CodecError):
        codec.decode(data)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "announced"),
        (b"NN", "follow the end"),
        (b"?", "unknown tag"),
        (b"l\xff\xff\xff\xff\x7f", "too many"),  # 34 billion items in six bytes
        (b"s\xff\xff\xff\xff\x7f", "announced"),
        (b"l" + b"\x01l" * 200, "deeper"),
        (b"i\x02\x01\x00", "shortest form"),
        (b"i\x00", "shortest form"),
        (b"l\x80\x00", "shortest form"),
        (b"s\x01\xff", "UTF-8"),
        (b"d\x01l\x00N", "cannot be a dict key"),
        (b"d\x02TNi\x01\x01N", "twice"),  # True == 1
        (b"a\x02|O\x01\x01\x08" + b"\0" * 8, "no numpy dtype"),
        (b"a\x03<f8\x01\x02\x08" + b"\0" * 8, "does not fit"),
        (b"a\x03<f8\x01\x01\x07" + b"\0" * 7, "whole number"),
        (b"a\x03|b1\x01\x01\x01\x02", "neither 0 nor 1"),
        (b"a\x03<U1\x01\x01\x04\xff\xff\xff\xff", "beyond Unicode"),
        (b"A\x03<f8\x01\x01\x08" + b"\0" * 8, "without need"),
        (b"g\x03>f8\x08" + b"\0" * 8, "scalar"),
    ],
)
def test_crafted_bytes_are_refused_with_a_reason(data, complaint):
    with pytest.raises(CodecError, match=complaint):
        codec.decode(data)


def test_keys_crafted_to_hash_alike_are_refused_before_they_cost_quadratic_time():
    prime = 2**61 - 1  # integers that differ by it have one hash in CPython
    colliding = {index * prime: None for index in range(100)}
    with pytest.raises(CodecError, match="equal hashes"):
        codec.decode(codec.encode(colliding))


def test_equal_values_have_equal_bytes_however_they_were_made():
    made_in_steps = {}
    made_in_steps["a"], made_in_steps["b"] = 1.0, (1, "x")
    assert codec.encode({"a": 1.0, "b": (1, "x")}) == codec.encode(made_in_steps)
    assert codec.encode(np.arange(6).reshape(2, 3)[:, ::2]) == codec.encode(np.array([[0, 2], [3, 5]]))
