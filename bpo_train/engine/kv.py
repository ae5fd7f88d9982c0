"""KV caches that fork: keys and values of every token are kept once, in segments that form a tree.

A `Prefix` is immutable. It names a parent prefix and holds the segment that was added to it, so that
siblings share their backbone's segments, and cutting a prefix at a branch point copies nothing. `BatchCache`
is the dense working buffer of one batch: row i's tokens lie at positions 0, 1, ..., however long the other
rows are.
"""

from __future__ import annotations

from typing import Any

import torch


class Prefix:
    """Keys and values of a token prefix: a parent prefix plus one segment.

    Attributes:
        length: tokens covered.
        version: weight version under which they were computed.
    """

    __slots__ = ("_parent", "_segment", "length", "version")

    def __init__(self, parent: Prefix | None, segment: torch.Tensor, version: int) -> None:
        """`segment`: float[2 (key, value), layers, heads, tokens, head size]."""
        self._parent = parent
        self._segment = segment
        self.length: int = (parent.length if parent else 0) + segment.shape[3]
        self.version = version

    def cut(self, length: int) -> Prefix | None:
        """The prefix of the first `length` tokens; None for 0. Shares all storage."""
        if length > self.length:
            raise ValueError(f"cannot cut a prefix of {self.length} tokens at {length}")
        node: Prefix | None = self
        while node is not None and node._parent is not None and node._parent.length >= length:
            node = node._parent
        if node is None or length == 0:
            return None
        if length == node.length:
            return node
        start = node._parent.length if node._parent else 0
        return Prefix(node._parent, node._segment[:, :, :, : length - start], node.version)

    def copy_into(self, buffer: torch.Tensor) -> None:
        """Write all tokens into `buffer`, float[2, layers, heads, capacity, head size], from position 0."""
        node: Prefix | None = self
        while node is not None:
            start = node._parent.length if node._parent else 0
            buffer[:, :, :, start : node.length] = node._segment
            node = node._parent


class BatchCache:
    """The dense KV buffer of one batch, in the form transformers' attention layers ask for.

    Before each forward pass `place` says at which positions of which rows the new tokens stand; `update`,
    called by every layer, stores them there and returns those rows up to the longest one.
    """

    is_compileable = False
    is_sliding = (False,)

    def __init__(
        self, shape: tuple[int, int, int, int, int], dtype: torch.dtype, device: torch.device
    ) -> None:
        """`shape`: (layers, rows, heads, capacity, head size)."""
        self.data = torch.zeros((2, *shape), dtype=dtype, device=device)
        self.capacity = shape[3]
        self._positions = torch.empty(0, dtype=torch.long)
        self._rows = torch.empty(0, dtype=torch.long)
        self._first, self._end = 0, 0

    def row(self, index: int) -> torch.Tensor:
        """Row `index`: float[2, layers, heads, capacity, head size] (a view)."""
        return self.data[:, :, index]

    def keep(self, rows: list[int], used: int) -> None:
        """Drop all rows but these: row `rows[i]` becomes row i. None holds more than `used` tokens.

        Only rows that move are copied, so `rows` had better leave in place what it can; a row may not move to
        where a later one of `rows` comes from.
        """
        for to, source in enumerate(rows):
            if to != source:
                self.data[:, :, to, :, :used] = self.data[:, :, source, :, :used]
        self.data = self.data[:, :, : len(rows)]

    def place(self, positions: torch.Tensor, end: int, first: int = 0) -> torch.Tensor:
        """Announce the next tokens' positions (long[n, new]), in the rows from `first` on.

        None of these rows is longer than `end` afterwards.

        Returns:
            The attention mask, bool[n, 1, new, end]: a token sees its own row up to and including itself.
        """
        self._positions = positions
        self._rows = torch.arange(positions.shape[0], device=positions.device)[:, None]
        self._first, self._end = first, end
        seen = torch.arange(end, device=positions.device)
        return seen <= positions[:, None, :, None]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[Any, Any]:
        """Store float[n, heads, new, head size] of one layer; return that layer's rows."""
        rows = slice(self._first, self._first + len(self._rows))
        stored = self.data[0, layer, rows], self.data[1, layer, rows]
        for buffer, new in zip(stored, (keys, values)):
            buffer[self._rows, :, self._positions] = new.transpose(1, 2)
        return stored[0][:, :, : self._end], stored[1][:, :, : self._end]

    def get_seq_length(self, layer: int = 0) -> int:
        """Tokens before the current ones; unused, since positions and masks are given explicitly."""
        return 0
