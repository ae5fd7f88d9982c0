"""Play in a new process, under another PYTHONHASHSEED and in another working directory.

`main(job, answers)` is the other side: it reads tasks from one file, plays them and writes what was answered
to another. Both lie in a private folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from ..snapshot import Snapshot
from ..target import Target, dump, load, process_environment
from .compare import Comparison
from .oracle import Event, perform

_OTHER_SIDE = "import sys; from wrappers.fidelity.elsewhere import main; main(*sys.argv[1:])"


@dataclass
class Task:
    """Events to play on a new instance; first it is restored from `snapshot` (bytes), where there is one."""

    events: Sequence[Event]
    snapshot: bytes | None = None
    before: Sequence[Event] = ()


Answers = list[dict[str, Any]]


class Elsewhere:
    """A process at work on tasks; several may run at once. cwd: None for an empty folder."""

    def __init__(
        self, target: Target, comparison: Comparison, tasks: Sequence[Task], hash_seed: int, cwd: str | None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="elsewhere-")
        folder = Path(self._folder.name)
        self._answers = folder / "answers"
        self._log = folder / "log"
        (folder / "job").write_bytes(dump((target, comparison, list(tasks))))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _OTHER_SIDE, str(folder / "job"), str(self._answers)],
                cwd=str(folder) if cwd is None else cwd,
                env=process_environment(hash_seed),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def answers(self) -> list[Answers]:
        """One list of answers for each task. Raises RuntimeError where the process failed."""
        try:
            status = self._process.wait()
            if status < 0:
                raise RuntimeError(f"the new process was ended by {signal.Signals(-status).name}")
            if status or not self._answers.exists():
                lines = self._log.read_text(errors="replace").strip().splitlines()
                raise RuntimeError(lines[-1] if lines else f"the new process ended with status {status}")
            return cloudpickle.loads(self._answers.read_bytes())
        finally:
            self._folder.cleanup()


def play(target: Target, comparison: Comparison, task: Task) -> Answers:
    """The answers of a new instance to a task; an exception is the last answer."""
    answers: Answers = []
    env = target.make()
    try:
        for event in task.before:
            perform(env, event, comparison)
        if task.snapshot is not None:
            observation, info = env.restore(Snapshot.from_bytes(task.snapshot))
            answers.append(comparison.answer(observation=observation, info=info))
        for event in task.events:
            answers.append(perform(env, event, comparison))
            if (answers[-1].get("terminated") or answers[-1].get("truncated")) and event is not task.events[
                -1
            ]:
                following = task.events[len(answers) - (task.snapshot is not None)]
                if following.kind == "step":
                    break
    except Exception as error:
        answers.append({"raised": f"{type(error).__name__}: {error}"})
    finally:
        env.close()
    return answers


def main(job: str, answers: str) -> None:
    target, comparison, tasks = load(Path(job).read_bytes())
    found = [play(target, comparison, task) for task in tasks]
    partial = Path(answers + ".part")
    partial.write_bytes(cloudpickle.dumps(found))
    partial.rename(answers)
    os._exit(0)  # whatever the environment left running (a thread) need not be waited for
