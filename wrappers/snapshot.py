"""A snapshot: the state of one environment at one moment, as a value.

It is opaque and immutable, can be restored any number of times, and knows where it belongs: the id and the
configuration of its environment. `to_bytes` writes it as data (codec.py), never as code:

    "SNAP" | schema version, 1 byte | digest of the rest, 16 bytes | the encoded (origin, payload)

Size, digest and bytes are computed when somebody asks: taking a snapshot must cost microseconds.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from . import codec
from .errors import CodecError, SnapshotError

SCHEMA_VERSION = 1
CAPABILITIES = ("exact", "replay", "filesystem", "memory", "none")

_MAGIC = b"SNAP"
_HEADER = len(_MAGIC) + 1 + 16


class Origin(NamedTuple):
    """Where a snapshot belongs: it is restored only into an environment of an equal origin."""

    env_id: str
    configuration: str
    capability: str

    def __str__(self) -> str:
        return f"{self.env_id[:200]} [{self.configuration[:1000]}], capability {self.capability}"


class Snapshot:
    """What `SnapshotEnv.snapshot()` returns and `SnapshotEnv.restore(snapshot)` takes.

    A snapshot that holds resources (disk layers, containers) gives them back on `close()`, at the end of a
    `with` block, or when it is garbage collected; plain ones have nothing to give back.
    """

    __slots__ = ("__weakref__", "_bytes", "_closed", "_finalize", "_origin", "_payload")

    def __init__(self, origin: Origin, payload: Any, release: Callable[[], None] | None = None) -> None:
        self._origin = origin
        self._payload = payload
        self._bytes: bytes | None = None
        self._closed = False
        self._finalize = weakref.finalize(self, release) if release else None

    @property
    def origin(self) -> Origin:
        return self._origin

    @property
    def env_id(self) -> str:
        return self._origin.env_id

    @property
    def configuration(self) -> str:
        """Constructor arguments and wrappers, step limit included, as readable text."""
        return self._origin.configuration

    @property
    def capability(self) -> str:
        """One of CAPABILITIES (docs/snapshots.md)."""
        return self._origin.capability

    @property
    def schema_version(self) -> int:
        return SCHEMA_VERSION

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of id, configuration and capability."""
        return codec.digest(codec.encode(tuple(self._origin))).hex()

    @property
    def size(self) -> int:
        """Length of `to_bytes()`."""
        return len(self.to_bytes())

    @property
    def digest(self) -> str:
        """Hexadecimal digest of the content: equal states of equal environments have equal digests."""
        return self.to_bytes()[len(_MAGIC) + 1 : _HEADER].hex()

    def to_bytes(self) -> bytes:
        """The snapshot as bytes for another process. Raises SnapshotError where it cannot leave this one."""
        if self.capability == "memory":
            raise SnapshotError(
                f"a snapshot of {self.env_id} with capability 'memory' is a live copy in this process and "
                "has no bytes; use an environment with get_state()/set_state(), or strategy='replay'"
            )
        if self._bytes is None:
            body = codec.encode((tuple(self._origin), self._payload))
            self._bytes = _MAGIC + bytes([SCHEMA_VERSION]) + codec.digest(body) + body
        return self._bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Reads what `to_bytes` wrote. Runs nothing; raises SnapshotError for anything else."""
        data = bytes(data)
        if len(data) < _HEADER or not data.startswith(_MAGIC):
            raise SnapshotError(f"these {len(data)} bytes are not a snapshot (they lack its header)")
        if data[len(_MAGIC)] != SCHEMA_VERSION:
            raise SnapshotError(
                f"the snapshot has schema version {data[len(_MAGIC)]}, this release reads {SCHEMA_VERSION}; "
                "take it again, or use the release that wrote it"
            )
        body = data[_HEADER:]
        if codec.digest(body) != data[len(_MAGIC) + 1 : _HEADER]:
            raise SnapshotError("the snapshot is damaged: its digest does not match its content")
        try:
            origin, payload = codec.decode(body)
            origin = Origin(*origin)
        except (CodecError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is malformed: {error}") from None
        if not all(type(part) is str for part in origin) or origin.capability not in CAPABILITIES:
            raise SnapshotError("the snapshot is malformed: it does not say where it belongs")
        snapshot = cls(origin, payload)
        snapshot._bytes = data
        return snapshot

    def payload(self) -> Any:
        """The content, for the strategy that wrote it. Raises SnapshotError after `close()`."""
        if self._closed:
            raise SnapshotError(f"the snapshot of {self.env_id} is closed; take another one")
        return self._payload

    def close(self) -> None:
        """Gives back what the snapshot holds; it cannot be restored afterwards. May be called twice."""
        self._closed = True
        self._payload = None
        if self._finalize is not None:
            self._finalize()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple:
        return (Snapshot.from_bytes, (self.to_bytes(),))  # between processes of Gymnasium's AsyncVectorEnv

    def __repr__(self) -> str:
        return f"<Snapshot of {self._origin}{', closed' if self._closed else ''}>"
