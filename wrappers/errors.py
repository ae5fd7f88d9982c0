"""The two errors of this package, apart from everything else so that each module can raise them."""

from __future__ import annotations


class SnapshotError(RuntimeError):
    """A snapshot could not be taken, read or restored; the message says why and what to do."""


class CodecError(SnapshotError, ValueError):
    """A value is no plain data, or bytes are no value that `codec.encode` wrote."""


def brief(value: object, limit: int = 80) -> str:
    """A short text for an error message that never fails, whatever `value` is."""
    try:
        text = repr(value)
    except Exception:  # e.g. an integer with more digits than Python is willing to print
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."
