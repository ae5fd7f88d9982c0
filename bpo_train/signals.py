"""Stopping at a safe point: the first Ctrl-C or SIGTERM asks, the second Ctrl-C insists."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType


class StopSignals:
    """While entered, SIGINT and SIGTERM set `requested` to their name instead of ending the process.

    A second SIGINT raises KeyboardInterrupt as usual.
    """

    def __init__(self) -> None:
        self.requested = ""

    def __enter__(self) -> StopSignals:
        self._before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number).name
