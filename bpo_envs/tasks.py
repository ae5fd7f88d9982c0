"""Task panels: which tasks a split holds, as data.

An environment draws its tasks from a *panel*: an ordered list of task ids with a sha256 of each task's
content. The panel is fixed by the data alone. It depends on no machine, worker count or worker seed, so that
two runs which name the same panel digest saw the same tasks, and a training split cannot leak into a test
split through a per-worker shuffle. ``reset`` picks a *position* in the panel (`choose_index`).
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


def task_digest(plain_data: Any) -> str:
    """Return the sha256 (64 hex digits) of a task's content, written as canonical JSON.

    Args:
        plain_data: anything JSON can hold, dictionaries with string keys. The order of keys does not count,
            that of lists does.

    Raises:
        TypeError: the data hold something that JSON cannot.
        ValueError: the data hold NaN or an infinity, which have no canonical form.
    """
    canonical = json.dumps(plain_data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


@dataclass(frozen=True)
class TaskPanel:
    """The tasks of one split of one benchmark, in canonical order.

    Attributes:
        benchmark: the benchmark's name, for example ``"webshop"``.
        split: the split's name, for example ``"test"``.
        task_ids: one distinct name per task.
        task_digests: `task_digest` of each task's content, in the order of ``task_ids``.
    """

    benchmark: str
    split: str
    task_ids: tuple[str, ...]
    task_digests: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_ids", tuple(self.task_ids))
        object.__setattr__(self, "task_digests", tuple(self.task_digests))
        if len(self.task_ids) != len(self.task_digests):
            raise ValueError(
                f"{self._name} was given {len(self.task_ids)} task ids and {len(self.task_digests)} digests; "
                "give one digest per task id"
            )
        if len(self._positions) != len(self.task_ids):
            twice = next(name for i, name in enumerate(self.task_ids) if self._positions[name] != i)
            raise ValueError(f"{self._name} holds the task id {twice!r} twice; task ids must be distinct")

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.task_ids)

    @property
    def _name(self) -> str:
        return f"the panel {self.benchmark}/{self.split}"

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {task_id: i for i, task_id in enumerate(self.task_ids)}

    @cached_property
    def digest(self) -> str:
        """sha256 (64 hex digits) over names, ids and task digests; another order is another panel."""
        return task_digest([self.benchmark, self.split, list(self.task_ids), list(self.task_digests)])

    def index_of(self, task_id: str) -> int:
        """Return the position of a task in this panel.

        Raises:
            ValueError: the panel holds no task of that id.
        """
        try:
            return self._positions[task_id]
        except (KeyError, TypeError):
            some = ", ".join(repr(name) for name in self.task_ids[:3])
            raise ValueError(
                f"{self._name} holds no task {task_id!r}; its {len(self)} ids look like {some}. "
                "Take one of panel.task_ids, or make the environment with the split that holds the task"
            ) from None

    def to_json(self) -> str:
        """Return the panel as JSON text, its digest included."""
        return json.dumps(
            {
                "benchmark": self.benchmark,
                "split": self.split,
                "digest": self.digest,
                "task_ids": self.task_ids,
                "task_digests": self.task_digests,
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> TaskPanel:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the text is no panel, or its content does not have the digest that it states.
        """
        data = json.loads(text)
        expected = {"benchmark", "split", "digest", "task_ids", "task_digests"}
        if not isinstance(data, dict) or set(data) != expected:
            given = sorted(data) if isinstance(data, dict) else type(data).__name__
            raise ValueError(f"a panel's JSON has the keys {sorted(expected)}, given: {given}")
        stated = data.pop("digest")
        panel = cls(**data)
        if panel.digest != stated:
            raise ValueError(
                f"{panel._name} states the digest {stated} but its content has {panel.digest}; "
                "the file was changed or damaged: write it again with to_json()"
            )
        return panel


def choose_index(
    panel: TaskPanel,
    options: Mapping[str, Any] | None,
    np_random: np.random.Generator,
    allowed: Collection[str] = (),
) -> int:
    """Return the position in ``panel`` that ``reset(options=...)`` asks for.

    Without a choice the position is a uniform draw from ``np_random`` (the environment's own, which
    ``reset(seed=)`` seeds); with one, ``np_random`` is not touched.

    Args:
        panel: the tasks of the environment's split.
        options: ``{"index": i}`` for a position in the panel, ``{"task_id": name}`` for a task by its id, or
            nothing.
        np_random: generator for the draw.
        allowed: further keys that the environment reads itself; they are not looked at here.

    Raises:
        ValueError: both keys at once, an unknown key, an index that is no integer or out of range, an unknown
            task id, or an empty panel.
    """
    options = options or {}
    known = ("index", "task_id", *allowed)
    unknown = [key for key in options if key not in known]
    if unknown:
        raise ValueError(f"reset options {unknown} are unknown; known here: {list(known)}")
    if "index" in options and "task_id" in options:
        raise ValueError(
            f"reset options name a task twice: index={options['index']!r} and "
            f"task_id={options['task_id']!r}; give one of the two"
        )
    if len(panel) == 0:
        raise ValueError(f"{panel._name} holds no task; make the environment with another split or more data")
    if "task_id" in options:
        return panel.index_of(options["task_id"])
    if "index" in options:
        return _position(panel, options["index"])
    return int(np_random.integers(len(panel)))


def _position(panel: TaskPanel, given: Any) -> int:
    try:
        index = -1 if isinstance(given, bool) else operator.index(given)
    except TypeError:
        index = -1
    if not 0 <= index < len(panel):
        raise ValueError(
            f"reset option index={given!r} is no position in {panel._name}; "
            f"give an integer from 0 to {len(panel) - 1}"
        )
    return index
