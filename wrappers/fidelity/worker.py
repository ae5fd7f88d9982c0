"""The process that runs the checks, each in a child of its own with a memory cap and a time limit.

    python -m wrappers.fidelity.worker JOB RESULTS

It starts afresh, so that the caller's threads, imports and settings have no part in what is found. It makes
the environment once and records episodes; then it forks a child for each check, which inherits both. Where
the environment leaves threads or processes behind, a fork would not be safe: each child prepares for itself
then. Results go to the file RESULTS, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..target import Target, load
from .checks import run_check
from .context import Context, Settings
from .oracle import now
from .program import printable
from .running import running

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(job: str, results: str) -> None:
    target, settings, names = load(Path(job).read_bytes())
    with Path(results).open("a", encoding="utf-8") as out:
        ended = _contained(lambda: _prepare_and_serve(target, settings, names, out), settings, None)
        if "error" in ended:
            _write(out, {"event": "broken", **ended})
        elif not ended["served"]:
            settings.time_limit = ended["time_limit"]
            _serve(Context(target, settings), names, out)


def _prepare_and_serve(target: Target, settings: Settings, names: list[str], out: TextIO) -> dict[str, Any]:
    """Prepares; where nothing is left running, forks the checks from here."""
    context = Context(target, settings)
    faulthandler.dump_traceback_later(settings.time_limit, exit=True)
    begin = now()
    context.prepare()
    faulthandler.cancel_dump_traceback_later()
    settings.time_limit += settings.slowness * (now() - begin)
    clean = not running() - context.baseline
    _write(out, {"event": "prepared", "capability": context.capability})
    if clean:
        _serve(context, names, out)
    return {"served": clean, "time_limit": settings.time_limit}


def _serve(context: Context, names: list[str], out: TextIO) -> None:
    for name in names:
        begin = now()
        _write(out, {"event": "start", "check": name})
        limit = context.settings.time_limit
        result = _contained(lambda name=name: _check(context, name), context.settings, limit)  # type: ignore[misc]
        _write(out, {"event": "result", "check": name, "seconds": now() - begin, **result})


def contained_checks(target: Target, settings: Settings, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Results by name, all found in one forked child of this process: quicker than a worker."""

    def work() -> dict[str, Any]:
        context = Context(target, settings)
        return {name: _check(context, name) for name in names}

    found = _contained(work, settings, settings.time_limit)
    return dict.fromkeys(names, found) if "error" in found else found


def _check(context: Context, name: str) -> dict[str, Any]:
    context.private = Path(tempfile.gettempdir())
    if not context.episodes:
        context.prepare()
    try:
        finding = run_check(name, context)
    except Exception as error:  # an exception of the environment is a failed check
        return {"passed": False, "skipped": False, **explain(error), "ignored": _left_out(context)}
    return {
        "passed": finding.passed,
        "skipped": finding.skipped,
        "detail": finding.detail,
        "reproduce": finding.reproduce,
        "data": finding.data,
        "ignored": _left_out(context),
    }


def _left_out(context: Context) -> list[str]:
    return sorted(context.comparison.not_compared)


def explain(error: BaseException) -> dict[str, Any]:
    """Detail and reproduction of an exception that the environment raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    detail = (
        f"the environment raised {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    )
    return {"detail": detail, "reproduce": {"code": "".join(traceback.format_exception(error)[-6:])}}


def _write(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message, default=printable) + "\n")
    out.flush()


# --- a child with a memory cap and a time limit ----------------------------------------------------------


def _contained(work: Callable[[], dict[str, Any]], settings: Settings, limit: float | None) -> dict[str, Any]:
    """What `work` returns in a forked child; {"error": why, "detail": why} where it did not end well."""
    with _private_folder() as folder:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _be_child(work, settings.memory_limit, limit, folder)
        ended = _wait(child, limit)
        _end_group(child)
        answer = folder / "answer.json"
        return json.loads(answer.read_text()) if answer.exists() else _broken(ended, folder / "log", limit)


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="fidelity-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _be_child(
    work: Callable[[], dict[str, Any]], memory_limit: int, limit: float | None, folder: Path
) -> None:
    """Runs `work` and ends the process; never returns."""
    status = 1
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        temporary = folder / "tmp"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        descriptor = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        _cap_memory(memory_limit)
        faulthandler.enable()
        if limit is not None:
            faulthandler.dump_traceback_later(0.95 * limit)
        try:
            found = work()
        except MemoryError as error:
            found = {"error": f"MemoryError: {error}", "passed": False, "detail": f"out of memory: {error}"}
        except BaseException as error:
            found = {"error": f"{type(error).__name__}: {error}", "passed": False, **explain(error)}
        partial = folder / "partial.json"
        partial.write_text(json.dumps(found, default=printable))
        partial.rename(folder / "answer.json")
        status = 0
    finally:
        os._exit(status)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _cap_memory(limit: int) -> None:
    """Data this process may allocate; not the address space, of which libraries reserve far more."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _wait(child: int, limit: float | None) -> int | None:
    """The status of `child`, or None where it had to be ended after `limit` seconds."""
    until = float("inf") if limit is None else now() + limit
    pause = 0.001
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if now() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(0.02, 1.5 * pause)


def _end_group(child: int) -> None:
    """Ends what the child left running in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _broken(ended: int | None, log: Path, limit: float | None) -> dict[str, Any]:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    timeout = next((i for i, line in enumerate(lines) if line.startswith("Timeout (")), None)
    tail = lines[-12:] if timeout is None else lines[timeout : timeout + 12]
    if ended is None:
        why = f"it hung: no end after {limit:g} s"
    elif os.WIFSIGNALED(ended):
        why = f"the process was ended by {signal.Signals(os.WTERMSIG(ended)).name}"
    else:
        why = f"the process ended itself with status {os.waitstatus_to_exitcode(ended)}"
    if timeout is not None and limit is None:
        why = "making, resetting or stepping the environment hung"
    where = [line.strip() for line in tail if "File " in line and "wrappers/fidelity" not in line]
    detail = why + (f" ({where[0]})" if where else "")
    reproduce = {"code": "\n".join(tail)} if tail else None
    return {"error": detail, "passed": False, "skipped": False, "detail": detail, "reproduce": reproduce}


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # threads that the environment left running need not be waited for
