"""Plain data to bytes and back: exact, canonical, and safe to read from anyone.

Plain data is None, bool, int of any size, float (NaN, -0.0), str, bytes, list, tuple, dict with any plain
key, numpy arrays and numpy scalars. It comes back with the same types, the same order and the same bits.

Each value is one tag byte and its content; a length is a little-endian base-128 number ("varint").
There is one way to write each value, and `decode` accepts no other: `encode(decode(b)) == b` for every
`b` it accepts, so a digest of the bytes is a digest of the value. Reading builds data and never runs code.
Every length is checked against the bytes that are really there, so time and memory stay proportional to
the input. JSON, msgpack and CBOR each lack several of these (tuples, big integers, one spelling per value).
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import CodecError, brief

MAX_DEPTH = 64
MAX_HASH_COLLISIONS = 64  # crafted keys that all hash alike would make building a dict take quadratic time

_PLAIN = "None, bool, int, float, str, bytes, list, tuple, dict, numpy arrays and numpy scalars"
_ATOMS = frozenset({type(None), bool, int, float, str, bytes})
_DTYPE = re.compile(r"[<>|][biufcSUMm]\d{1,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")
_FLOAT = struct.Struct("<d")


def encode(value: Any) -> bytes:
    """Bytes of a plain value. Raises CodecError naming the place of the first thing that is not plain."""
    out = bytearray()
    try:
        _write(out, value, 0)
    except CodecError:
        _name_culprit(value)
        raise
    return bytes(out)


def decode(data: bytes) -> Any:
    """The value that `encode` wrote. Raises CodecError, and nothing else, for any other bytes."""
    reader = _Reader(data)
    value = reader.read(0)
    if reader.at != len(reader.data):
        raise CodecError(f"{len(reader.data) - reader.at} bytes follow the end of the value")
    return value


def digest(data: bytes) -> bytes:
    """16 bytes that differ when `data` differs (against damage; it proves nothing about the author)."""
    return hashlib.blake2b(data, digest_size=16).digest()


def copy_plain(value: Any) -> Any:
    """A copy of plain data that shares nothing mutable with it. Raises CodecError like `encode`."""
    try:
        return _copy(value)
    except (CodecError, RecursionError):
        _name_culprit(value)
        raise


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {
            key if type(key) in _ATOMS else _copy(key): item if type(item) in _ATOMS else _copy(item)
            for key, item in value.items()
        }
    if kind is list:
        return [item if type(item) in _ATOMS else _copy(item) for item in value]
    if kind is tuple:
        return tuple([item if type(item) in _ATOMS else _copy(item) for item in value])
    if kind is np.ndarray:
        _check_dtype(value.dtype)
        return value.copy(order="K")
    if isinstance(value, np.generic):
        if not isinstance(value, (np.str_, np.bytes_)):
            _check_dtype(value.dtype)
        return value
    raise CodecError(f"{kind.__module__}.{kind.__qualname__} is not plain data ({_PLAIN})")


def _name_culprit(value: Any, path: str = "value", depth: int = 0) -> None:
    """Raises CodecError that gives the path of the first part of `value` that is not plain, if any."""
    if depth > MAX_DEPTH:
        raise CodecError(f"{path[:60]}... is nested deeper than {MAX_DEPTH} levels (or contains itself)")
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            _name_culprit(key, f"a key of {path}", depth + 1)
            _name_culprit(item, f"{path}[{brief(key)}]", depth + 1)
    elif kind in (list, tuple):
        for index, item in enumerate(value):
            _name_culprit(item, f"{path}[{index}]", depth + 1)
    else:
        try:
            _write(bytearray(), value, depth)
        except CodecError as error:
            raise CodecError(f"{path}: {error}") from None


# --- writing ---------------------------------------------------------------------------------------------


def _write(out: bytearray, value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise CodecError(f"nested deeper than {MAX_DEPTH} levels (or contains itself)")
    write = _WRITERS.get(type(value))
    if write is not None:
        write(out, value, depth)
    elif isinstance(value, np.generic):
        _write_scalar(out, value)
    else:
        kind = type(value)
        raise CodecError(f"{kind.__module__}.{kind.__qualname__} is not plain data ({_PLAIN})")


def _write_length(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _write_raw(out: bytearray, tag: bytes, raw: bytes) -> None:
    out += tag
    _write_length(out, len(raw))
    out += raw


def _write_int(out: bytearray, value: int, depth: int) -> None:
    _write_raw(out, b"i", value.to_bytes(_int_size(value), "little", signed=True))


def _int_size(value: int) -> int:
    """Fewest bytes of two's complement that hold `value`."""
    return (value if value >= 0 else ~value).bit_length() // 8 + 1


def _write_items(tag: bytes) -> Callable[[bytearray, Any, int], None]:
    def write(out: bytearray, value: list | tuple, depth: int) -> None:
        out += tag
        _write_length(out, len(value))
        for item in value:
            _write(out, item, depth + 1)

    return write


def _write_dict(out: bytearray, value: dict, depth: int) -> None:
    out += b"d"
    _write_length(out, len(value))
    for key, item in value.items():
        _write(out, key, depth + 1)
        _write(out, item, depth + 1)


def _write_array(out: bytearray, value: np.ndarray, depth: int) -> None:
    _check_dtype(value.dtype)
    fortran = value.flags.f_contiguous and not value.flags.c_contiguous
    out += b"A" if fortran else b"a"
    _write_raw(out, b"", value.dtype.str.encode())
    _write_length(out, value.ndim)
    for size in value.shape:
        _write_length(out, size)
    _write_raw(out, b"", value.tobytes(order="F" if fortran else "C"))


def _write_scalar(out: bytearray, value: np.generic) -> None:
    if isinstance(value, np.str_):
        _write_raw(out, b"u", value.encode("utf-8", "surrogatepass"))  # str(value) drops zeros at its end
    elif isinstance(value, np.bytes_):
        _write_raw(out, b"y", bytes(value))
    else:
        _check_dtype(value.dtype)
        _write_raw(out, b"g", value.dtype.str.encode())
        _write_raw(out, b"", value.tobytes())


def _check_dtype(dtype: np.dtype) -> None:
    # long double is refused: its size depends on the machine, and its padding bytes are not determined
    if not _DTYPE.fullmatch(dtype.str) or dtype.itemsize == 0 or dtype.char in "gG":
        raise CodecError(
            f"numpy dtype {dtype} is not plain data (expected bool, integer, float or complex up to 64 bits "
            "a part, fixed-width text or bytes, datetime64, timedelta64)"
        )


_WRITERS: dict[type, Callable[[bytearray, Any, int], None]] = {
    type(None): lambda out, value, depth: out.extend(b"N"),
    bool: lambda out, value, depth: out.extend(b"T" if value else b"F"),
    int: _write_int,
    float: lambda out, value, depth: out.extend(b"f" + _FLOAT.pack(value)),
    str: lambda out, value, depth: _write_raw(out, b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda out, value, depth: _write_raw(out, b"b", value),
    list: _write_items(b"l"),
    tuple: _write_items(b"t"),
    dict: _write_dict,
    np.ndarray: _write_array,
}


# --- reading ---------------------------------------------------------------------------------------------


class _Reader:
    """Walks once over the bytes; `at` is the position of the next unread one."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        self.at = 0

    def read(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise CodecError(f"nested deeper than {MAX_DEPTH} levels")
        tag = self.take(1)
        read = _READERS.get(tag)
        if read is None:
            raise CodecError(f"unknown tag {tag!r} at byte {self.at - 1}")
        return read(self, depth)

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise CodecError(
                f"{size} bytes announced at byte {self.at}, {len(self.data) - self.at} are there"
            )
        raw = self.data[self.at : end]
        self.at = end
        return raw

    def length(self) -> int:
        number = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                if byte == 0 and shift:
                    break
                return number
        raise CodecError(f"a length before byte {self.at} is not in its shortest form")

    def count(self, bytes_each: int) -> int:
        """A number of items, each of which takes at least `bytes_each` of the bytes still to come."""
        number = self.length()
        if number * bytes_each > len(self.data) - self.at:
            raise CodecError(
                f"{number} items announced at byte {self.at}, too many for the bytes that follow"
            )
        return number

    def raw(self) -> bytes:
        return self.take(self.length())

    def text(self) -> str:
        try:
            return self.raw().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise CodecError(f"text before byte {self.at} is not UTF-8: {error.reason}") from None


def _read_int(reader: _Reader, depth: int) -> int:
    raw = reader.raw()
    value = int.from_bytes(raw, "little", signed=True)
    if len(raw) != _int_size(value):
        raise CodecError(f"an integer before byte {reader.at} is not in its shortest form")
    return value


def _read_items(reader: _Reader, depth: int) -> list:
    return [reader.read(depth + 1) for _ in range(reader.count(1))]


def _read_dict(reader: _Reader, depth: int) -> dict:
    value: dict = {}
    hashes: set[int] = set()
    count = reader.count(2)
    for done in range(count):
        key = reader.read(depth + 1)
        try:
            hashes.add(hash(key))
        except TypeError:
            raise CodecError(f"a {type(key).__name__} before byte {reader.at} cannot be a dict key") from None
        if done - len(hashes) > MAX_HASH_COLLISIONS:
            raise CodecError(f"more than {MAX_HASH_COLLISIONS} dict keys with equal hashes")
        value[key] = reader.read(depth + 1)
    if len(value) != count:
        raise CodecError(f"a dict before byte {reader.at} has a key twice")
    return value


def _read_dtype(reader: _Reader) -> np.dtype:
    text = reader.text()
    try:
        dtype = np.dtype(text) if _DTYPE.fullmatch(text) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.str != text:
        raise CodecError(f"{text[:20]!r} before byte {reader.at} is no numpy dtype of plain data")
    _check_dtype(dtype)
    return dtype


def _read_array(order: str) -> Callable[[_Reader, int], np.ndarray]:
    def read(reader: _Reader, depth: int) -> np.ndarray:
        dtype = _read_dtype(reader)
        shape = tuple([reader.length() for _ in range(reader.count(1))])
        flat = _values(reader.raw(), dtype)
        try:
            value = flat.reshape(shape, order=order)  # type: ignore[call-overload]
        except ValueError:
            raise CodecError(f"shape {shape[:8]} before byte {reader.at} does not fit its data") from None
        if order == "F" and value.flags.c_contiguous:
            raise CodecError(f"an array before byte {reader.at} is marked as column-major without need")
        return value

    return read


def _read_scalar(reader: _Reader, depth: int) -> np.generic:
    dtype = _read_dtype(reader)
    raw = reader.raw()
    values = _values(raw, dtype)
    if len(raw) != dtype.itemsize or dtype.kind in "SU" or not dtype.isnative:
        raise CodecError(f"a numpy scalar before byte {reader.at} is not of its dtype {dtype.str}")
    return values[0]


def _values(raw: bytes, dtype: np.dtype) -> np.ndarray:
    """A writable array, flat, over a copy of `raw`; bit patterns that numpy cannot hold are refused."""
    if len(raw) % dtype.itemsize:
        raise CodecError(f"{len(raw)} bytes are no whole number of {dtype} values")
    values = np.frombuffer(raw, dtype).copy()
    if dtype.kind == "b" and (values.view(np.uint8) > 1).any():
        raise CodecError("a numpy bool holds neither 0 nor 1")
    if dtype.kind == "U" and (values.view(f"{dtype.str[0]}u4") > 0x10FFFF).any():
        raise CodecError("numpy text holds a number beyond Unicode")
    return values


def _constant(value: Any) -> Callable[[_Reader, int], Any]:
    return lambda reader, depth: value


_READERS: dict[bytes, Callable[[_Reader, int], Any]] = {
    b"N": _constant(None),
    b"T": _constant(True),
    b"F": _constant(False),
    b"i": _read_int,
    b"f": lambda reader, depth: _FLOAT.unpack(reader.take(8))[0],
    b"s": lambda reader, depth: reader.text(),
    b"b": lambda reader, depth: reader.raw(),
    b"l": _read_items,
    b"t": lambda reader, depth: tuple(_read_items(reader, depth)),
    b"d": _read_dict,
    b"a": _read_array("C"),
    b"A": _read_array("F"),
    b"g": _read_scalar,
    b"u": lambda reader, depth: np.str_(reader.text()),
    b"y": lambda reader, depth: np.bytes_(reader.raw()),
}
