"""What the toy games share: a text game as a Gymnasium environment whose whole state is plain data.

A game is its rules: where a task begins, what an action does, what the player reads, what can be done. The
rules speak about a *moment*, a small frozen dataclass of plain data, and `TextGame` does the rest: tasks,
counting, the common info, state in and out. What the player reads follows from the moment alone, so that a
restored game shows what it showed.
"""

from __future__ import annotations

import dataclasses
import random
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import gymnasium as gym

from bpo_envs.tasks import TaskPanel, choose_index, task_digest
from bpo_envs.text import Text

Task = TypeVar("Task")
Moment = TypeVar("Moment")

SPLITS = ("train", "dev", "test", "all")
UNKNOWN = "unknown action\n"
"""What the player reads after an action that means nothing."""

_LONGEST_TEXT = 2**14
_LONGEST_ACTION = 2**12


class TextGame(gym.Env[str, str], Generic[Task, Moment]):
    """A game of text with tasks of kind `Task`, whose state is a `Moment`.

    An action that means nothing changes nothing but the count of steps, and the observation says so.

    Args:
        tasks: the tasks of the split.
        panel: their names and digests, in the same order.
        render_mode: None or ``"ansi"``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": ["ansi"],
        "render_fps": 1,
    }
    set_state_returns_observation = True  # snapshots need not carry texts
    _moment_type: type  # the dataclass of the game's moments

    def __init__(self, tasks: Sequence[Task], panel: TaskPanel, render_mode: str | None) -> None:
        check_choice("render_mode", render_mode, (None, "ansi"))
        self.task_panel = panel
        self.render_mode = render_mode
        self.step_limit: int | None = None  # set from outside: the limit is the wrapper TimeLimit's
        self.observation_space = Text(_LONGEST_TEXT)
        self.action_space = Text(_LONGEST_ACTION)
        self._tasks = tasks
        self._index = 0
        self._steps = 0
        self._moment: Moment | None = None

    # The rules of a game.

    @abstractmethod
    def _begin(self) -> Moment:
        """The first moment of `self.task`; may draw from `np_random`."""

    @abstractmethod
    def _play(self, moment: Moment, action: str) -> tuple[Moment, float]:
        """What an action (single spaces) leads to, and its reward; may draw from `np_random`."""

    @abstractmethod
    def _read(self, moment: Moment) -> str:
        """What the player reads at a moment."""

    @abstractmethod
    def _choices(self, moment: Moment) -> list[str]:
        """The actions that mean something; none at the end."""

    @abstractmethod
    def _score(self, moment: Moment) -> float:
        """The score so far."""

    @abstractmethod
    def _won(self, moment: Moment) -> bool:
        """Whether the task is done, as well as it can be."""

    @abstractmethod
    def _check(self, data: dict[str, Any]) -> Moment:
        """Make the moment of fields whose names are right and whose content is not to be trusted.

        Raises:
            ValueError: no moment of `self.task` has this content.
        """

    @abstractmethod
    def instruction(self) -> str:
        """The task in one line."""

    @abstractmethod
    def best_action(self) -> str:
        """What a player does who knows the rules and the task."""

    # What follows from them.

    @property
    def task(self) -> Task:
        """The episode's task."""
        return self._tasks[self._index]

    @property
    def moment(self) -> Moment:
        """Where the episode stands.

        Raises:
            RuntimeError: before the first reset.
        """
        if self._moment is None:
            raise RuntimeError("the environment has no episode yet; call reset() first")
        return self._moment

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: seeds `np_random`: the choice of the task, and the game's own chance where it has any.
            options: ``{"index": i}``: a position in the split's panel; ``{"task_id": name}``.

        Raises:
            ValueError: options that name no task.
        """
        super().reset(seed=seed)
        self._index = choose_index(self.task_panel, options, self.np_random)
        self._steps = 0
        self._moment = self._begin()
        return self._read(self._moment), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out an action.

        Raises:
            TypeError: the action is no string.
            RuntimeError: before the first reset, or after the end of the episode.
        """
        if not isinstance(action, str):
            raise TypeError(
                f"an action is a string, one of info['admissible_actions']; given: {action!r} "
                f"({type(action).__name__})"
            )
        if not self._choices(self.moment):
            raise RuntimeError("the episode is over; call reset(), or restore a snapshot")
        self._moment, reward = self._play(self.moment, " ".join(action.split()))
        self._steps += 1
        return self._read(self._moment), reward, not self._choices(self._moment), False, self._info()

    def admissible_actions(self) -> list[str]:
        """Return the actions that mean something now; none at the end of the episode."""
        return self._choices(self.moment)

    def render(self) -> str | None:
        """Return what the player reads if made with ``render_mode="ansi"``."""
        return self._read(self.moment) if self.render_mode == "ansi" else None

    def get_state(self) -> dict[str, Any]:
        """Return the episode's state as plain data; `np_random` is not part of it."""
        return {
            "task": self.task_panel.task_ids[self._index],
            "steps": self._steps,
            "moment": dataclasses.asdict(self.moment),  # type: ignore[call-overload]
        }

    def set_state(self, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Go to a state that `get_state` returned, in this or another environment with the same tasks.

        Returns:
            The observation and info of that moment.

        Raises:
            ValueError: the data are no state of a task of this split.
        """
        if not isinstance(data, dict) or set(data) != {"task", "steps", "moment"}:
            raise ValueError(f"a state is a dict of 'task', 'steps' and 'moment'; given: {data!r}")
        steps, moment = data["steps"], data["moment"]
        if type(steps) is not int or steps < 0:
            raise ValueError(f"state: steps is {steps!r}; expected an integer >= 0")
        before, self._index = self._index, self.task_panel.index_of(data["task"])
        try:
            self._moment = self._moment_of(moment)
        except ValueError:
            self._index = before
            raise
        self._steps = steps
        return self._read(self._moment), self._info()

    def _moment_of(self, data: Any) -> Moment:
        names = {field.name for field in dataclasses.fields(self._moment_type)}
        if not isinstance(data, dict) or set(data) != names:
            raise ValueError(f"state: the moment is a dict of {', '.join(sorted(names))}; given: {data!r}")
        return self._check(data)

    def _info(self) -> dict[str, Any]:
        moment = self.moment
        return {
            "task_id": self.task_panel.task_ids[self._index],
            "task_digest": self.task_panel.task_digests[self._index],
            "instruction": self.instruction(),
            "admissible_actions": self._choices(moment),
            "won": self._won(moment),
            "score": self._score(moment),
            "steps_left": None if self.step_limit is None else self.step_limit - self._steps,
        }


@dataclass(frozen=True)
class NoisyExpert:
    """Plays any toy game, and errs as often as it is told to: data for imitation.

    Attributes:
        right: probability of the best action; else any admissible one.
    """

    right: float = 1.0

    def __call__(self, env: gym.Env, rng: random.Random) -> str:
        """The next action."""
        game = env.unwrapped
        if not isinstance(game, TextGame):
            raise TypeError(f"NoisyExpert plays the games of bpo_envs.toy; given: {game!r}")
        if rng.random() < self.right:
            return game.best_action()
        return rng.choice(game.admissible_actions())


def distinct(draw: Callable[[int], Task], wanted: int, possible: int | None = None) -> tuple[Task, ...]:
    """The first different ones among draw(0), draw(1), ...: `wanted` of them, or all that are possible."""
    found: dict[Task, None] = {}
    number = 0
    while len(found) < wanted and len(found) != possible:
        found.setdefault(draw(number))
        number += 1
    return tuple(found)


def split_range(split: str, count: int) -> range:
    """The positions of a split in the order of all tasks: a fifth is test, the next dev, the rest train.

    Raises:
        ValueError: an unknown split, or too few tasks to split.
    """
    check_choice("split", split, SPLITS)
    if count < len(SPLITS) + 1:
        raise ValueError(f"{count} different tasks are too few to split; make the game larger")
    fifth = count // 5
    starts = {"test": 0, "dev": fifth, "train": 2 * fifth, "all": 0}
    ends = {"test": fifth, "dev": 2 * fifth, "train": count, "all": count}
    return range(starts[split], ends[split])


def make_panel(benchmark: str, split: str, names: Sequence[str], contents: Sequence[Any]) -> TaskPanel:
    """The panel of tasks given by their names and their contents as plain data."""
    return TaskPanel(benchmark, split, tuple(names), tuple(task_digest(content) for content in contents))


def copied_panel(benchmark: str, split: str, name: str, content: Any, copies: int) -> TaskPanel:
    """The panel of a game that has one task, listed `copies` times, so that an evaluation plays it so often.

    Raises:
        ValueError: an unknown split, or a number of copies out of range.
    """
    check_choice("split", split, SPLITS)
    check_integer("copies", copies, 1, 10_000)
    names = [name] if copies == 1 else [f"{name}-{n}" for n in range(copies)]
    return TaskPanel(benchmark, split, tuple(names), (task_digest(content),) * copies)


def check_choice(name: str, given: object, choices: tuple[object, ...]) -> None:
    """Raises ValueError unless `given` is one of `choices`."""
    if given not in choices:
        raise ValueError(f"unknown {name}={given!r}; expected one of {', '.join(map(repr, choices))}")


def check_integer(name: str, given: object, least: int, most: int) -> None:
    """Raises ValueError unless `given` is an integer from `least` to `most`."""
    if type(given) is not int or not least <= given <= most:
        raise ValueError(f"{name} is {given!r}; expected an integer from {least} to {most}")


def require(data: Mapping[str, Any], name: str, expected: str, holds: bool) -> None:
    """Raises ValueError naming a field of a moment unless `holds`."""
    if not holds:
        raise ValueError(f"state: {name} is {data[name]!r}; expected {expected}")
