"""Where the parts of a vector environment live: in this process (Host), or in another one (Worker).

Both take calls (slot, method, arguments) by `send`, and answer them in order by `receive`, so that several
workers are busy at the same time. A worker is a plain Python process at the other end of a pipe; it ends when
the pipe does.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any

from .errors import SnapshotError
from .snapshot import Snapshot
from .target import Target, dump, load, process_environment

_PATIENCE = 10.0  # seconds that a worker has to end by itself

Call = tuple[int, str, tuple]


class Host:
    """Environments in this process."""

    def __init__(self, target: Target, size: int) -> None:
        self.size = size
        self._envs = [target.make() for _ in range(size)]
        self._calls: list[Call] = []

    def send(self, calls: list[Call]) -> None:
        self._calls = calls

    def receive(self) -> list[Any]:
        return [self.perform(*call) for call in self._calls]

    def perform(self, slot: int, method: str, arguments: tuple) -> Any:
        env = self._envs[slot]
        if method == "reset":
            return env.reset(seed=arguments[0], options=arguments[1])
        return getattr(env, method)(*arguments)

    def close(self) -> None:
        for env in self._envs:
            env.close()
        self._envs = []


# --- worker processes ------------------------------------------------------------------------------------


class Worker:
    """Environments in another process. It ends when its pipe does, whatever becomes of this one."""

    def __init__(self, target: Target, size: int) -> None:
        self.size = size
        self._given_back: list[int] = []  # tickets of closed snapshots, told with the next calls
        self._told = 0
        self._pipe, other = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from wrappers.hosts import serve; serve({other.fileno()})"],
            pass_fds=[other.fileno()],
            env=process_environment(),
        )
        other.close()
        self._pipe.send_bytes(dump((target, size)))

    def send(self, calls: list[Call]) -> None:
        returned = [self._given_back.pop() for _ in range(len(self._given_back))]
        self._told = len(returned)
        try:
            self._pipe.send([*((0, "release", (ticket,)) for ticket in returned), *calls])
        except OSError:
            raise RuntimeError(self._gone()) from None

    def receive(self) -> list[Any]:
        try:
            status, value = self._pipe.recv()
        except (EOFError, OSError):
            raise RuntimeError(self._gone()) from None
        if status == "snapshot error":
            raise SnapshotError(value)
        if status == "error":
            raise RuntimeError(f"in a worker process: {value}")
        return [self._held(item) if isinstance(item, _Lent) else item for item in value[self._told :]]

    def _held(self, lent: _Lent) -> Snapshot:
        snapshot = Snapshot.from_bytes(lent.data)
        release = functools.partial(self._given_back.append, lent.ticket)
        return Snapshot(snapshot.origin, snapshot.payload(), release)

    def _gone(self) -> str:
        return (
            f"a worker process has ended (status {self._process.poll()}); close this vector and make another"
        )

    def close(self) -> None:
        self._pipe.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start(target: Target, sizes: Sequence[int]) -> list[Host | Worker]:
    """Starts workers, all at the same time. Raises RuntimeError where one cannot make its environments."""
    workers = [Worker(target, size) for size in sizes]
    try:
        for worker in workers:
            worker.receive()
    except BaseException:
        for worker in workers:
            worker.close()
        raise
    return list(workers)


class _Lent:
    """A snapshot that stays in its worker, for it holds resources, and its bytes."""

    def __init__(self, ticket: int, data: bytes) -> None:
        self.ticket, self.data = ticket, data


def serve(descriptor: int) -> None:
    """The main loop of a worker process: answers calls until the pipe ends."""
    pipe = Connection(descriptor)
    lent: dict[int, Snapshot] = {}
    try:
        pipe.send(_answer(lambda: _prepare(pipe)))
        while _HOSTS:
            calls = pipe.recv()
            pipe.send(_answer(lambda: [_perform(call, lent) for call in calls]))  # noqa: B023
    except (EOFError, OSError):  # the other side is gone
        pass
    for host in _HOSTS:
        host.close()
    os._exit(0)  # threads that an environment left running need not be waited for


_HOSTS: list[Host] = []  # of this worker: one, once it is made


def _prepare(pipe: Connection) -> list:
    _HOSTS.append(Host(*load(pipe.recv_bytes())))
    return []


def _perform(call: Call, lent: dict[int, Snapshot]) -> Any:
    slot, method, arguments = call
    if method == "release":
        lent.pop(arguments[0]).close()
        return None
    answer = _HOSTS[0].perform(slot, method, arguments)
    if isinstance(answer, Snapshot) and answer.capability == "filesystem":
        ticket = max(lent, default=0) + 1
        lent[ticket] = answer
        return _Lent(ticket, answer.to_bytes())
    return answer


def _answer(work: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "ok", work()
    except SnapshotError as error:
        return "snapshot error", str(error)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return "error", f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
