"""A space for text: any string up to a length.

Gymnasium's own `Text` space lists an alphabet, which the pages and prompts of language environments do not
have, and `AsyncVectorEnv` reads its texts from shared memory once, at construction, so that it never shows a
later one. The space here admits every character, and registers shared-memory functions that carry the text
as UTF-8 in a bounded buffer of ``4 * max_length`` bytes per environment. Vector environments, sync or async,
then return a tuple with one ``str`` per environment.
"""

from __future__ import annotations

import multiprocessing
import string
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from ctypes import c_int64, c_uint8
from typing import Any, overload

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import (
    batch_differing_spaces,
    concatenate,
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

_UTF8_BYTES = 4  # the most that one character takes
_SAMPLE_ALPHABET = list(string.ascii_lowercase + string.digits + " ")
_SAMPLE_LENGTH = 32


class Text(spaces.Space[str]):
    """Every ``str`` of at most ``max_length`` characters, the empty one included.

    Strings with lone surrogates are no members: they are no Unicode text and have no UTF-8 form.

    Args:
        max_length: the greatest length, in characters (code points), not bytes.
        seed: seed or generator for `sample`.

    Raises:
        ValueError: ``max_length`` is not an integer >= 0.
    """

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        if isinstance(max_length, bool) or not isinstance(max_length, (int, np.integer)) or max_length < 0:
            raise ValueError(f"Text needs max_length, an integer >= 0 (in characters); given: {max_length!r}")
        self.max_length = int(max_length)
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text has no array of fixed size."""
        return False

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Return a short string of lower-case letters, digits and spaces (at most 32 characters).

        Raises:
            ValueError: a mask or probability was given, which an open alphabet cannot have.
        """
        if mask is not None or probability is not None:
            raise ValueError("Text.sample takes no mask or probability: the alphabet is open. Call sample()")
        longest = min(self.max_length, _SAMPLE_LENGTH)
        length = self.np_random.integers(min(1, longest), longest + 1)
        return "".join(self.np_random.choice(_SAMPLE_ALPHABET, size=length).tolist())

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a ``str`` within the length and without lone surrogates."""
        return isinstance(x, str) and len(x) <= self.max_length and _has_utf8(x)

    def __eq__(self, other: object) -> bool:
        """Equal bounds make equal spaces; the generators do not count."""
        return isinstance(other, Text) and self.max_length == other.max_length

    # As for Gymnasium's own spaces: equality by value, and mutable through its generator.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The call that makes an equal space."""
        return f"Text(max_length={self.max_length})"


def _has_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# Vector environments. `iterate` is left unregistered on purpose: Gymnasium then iterates over a batch of
# actions as it is, where a registered function would be asked to iterate over each single string.


class SharedTexts(Sequence[str]):
    """A live view of ``n`` texts in shared memory; indexing decodes, and a copy is a plain tuple of ``str``.

    `AsyncVectorEnv` keeps one such object for its lifetime and returns a ``deepcopy`` of it after each step
    (the object itself if made with ``copy=False``).
    """

    def __init__(self, lengths: Any, buffer: Any, n: int) -> None:
        self._lengths = np.frombuffer(lengths.get_obj(), dtype=np.int64)
        self._buffer = np.frombuffer(buffer.get_obj(), dtype=np.uint8).reshape(n, -1)

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        return self._buffer[index, : self._lengths[index]].tobytes().decode("utf-8")

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)


@create_shared_memory.register(Text)
def _create_text_memory(space: Text, n: int = 1, ctx: Any = multiprocessing) -> tuple[Any, Any]:
    # A row has at least one byte so that numpy can view the buffer of an empty space, too.
    return ctx.Array(c_int64, n), ctx.Array(c_uint8, n * max(1, _UTF8_BYTES * space.max_length))


@read_from_shared_memory.register(Text)
def _read_text_memory(space: Text, shared_memory: tuple[Any, Any], n: int = 1) -> SharedTexts:
    return SharedTexts(*shared_memory, n=n)


@write_to_shared_memory.register(Text)
def _write_text_memory(space: Text, index: int, value: str, shared_memory: tuple[Any, Any]) -> None:
    if value not in space:
        given = f"{len(value)} characters" if isinstance(value, str) else f"a {type(value).__name__}"
        raise ValueError(
            f"environment {index} returned {given}, not a text in {space} (lone surrogates are excluded); "
            "give the environment a space with a greater max_length, or fix the observation"
        )
    lengths, buffer = shared_memory
    encoded = value.encode("utf-8")
    start = index * (len(buffer) // len(lengths))
    np.frombuffer(buffer.get_obj(), dtype=np.uint8)[start : start + len(encoded)] = np.frombuffer(
        encoded, np.uint8
    )
    lengths.get_obj()[index] = len(encoded)


@create_empty_array.register(Text)
def _empty_texts(space: Text, n: int = 1, fn: Callable[..., Any] = np.zeros) -> tuple[str, ...]:
    return ("",) * n


@concatenate.register(Text)
def _concatenate_texts(space: Text, items: Iterable[str], out: Any) -> tuple[str, ...]:
    return tuple(items)


@batch_differing_spaces.register(Text)
def _batch_differing_texts(texts: Sequence[Text]) -> spaces.Tuple:  # type: ignore[misc]  # dispatched by element
    return spaces.Tuple([deepcopy(space) for space in texts], seed=deepcopy(texts[0].np_random))


@spaces.utils.is_space_dtype_shape_equiv.register(Text)
def _share_memory_layout(space_1: Text, space_2: Any) -> bool:
    return space_1 == space_2
