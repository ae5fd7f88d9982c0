"""``bpo/KeyCorridor-v0``: a corridor of rooms with keys of colours, a door at its end.

The player starts in the first room and sees the room it stands in. It can carry one key; taking another
leaves the first behind. A wrong key breaks in the lock and ends the episode. So an episode is a long run of
decisions that hardly matter, and a few that decide it.

    open the door with the red key
    room 1: blue key
    > right
    room 2: red key, grey key
    > take red
    you hold the red key
    > right
    room 3: door
    > open
    the door opens
"""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from bpo_envs.tasks import TaskPanel
from bpo_envs.toy.game import (
    UNKNOWN,
    TextGame,
    check_choice,
    check_integer,
    distinct,
    make_panel,
    require,
    split_range,
)

COLOURS = ("red", "green", "blue", "yellow", "purple", "grey")
REWARDS = ("sparse", "dense")
TASKS = 2000
"""Tasks of all splits together, or all there are if a small corridor has fewer."""

Places = tuple[tuple[str, int], ...]
"""(colour, room) of each key that lies somewhere, in the order of `COLOURS`."""

_SAYS = {
    "unknown": UNKNOWN,
    "wall": "there is a wall\n",
    "absent": "there is no such key\n",
    "no door": "there is no door\n",
    "locked": "the door is locked\n",
    "opened": "the door opens\n",
}
_EVENTS = ("begin", "moved", "took", "broke", *_SAYS)


@dataclass(frozen=True)
class Corridor:
    """A task.

    Attributes:
        size: number of rooms, 1 to `size`; the door is in the last.
        keys: where they lie at first.
        target: the colour of the key that fits.
    """

    size: int
    keys: Places
    target: str


@dataclass(frozen=True)
class Moment:
    """Where the player is, what it holds ("": nothing), what lies where, and what happened last."""

    room: int
    hand: str
    keys: Places
    event: str

    @property
    def over(self) -> bool:
        return self.event in ("opened", "broke")


class KeyCorridorEnv(TextGame[Corridor, Moment]):
    """Find the key, carry it to the door, open it. Actions: ``left``, ``right``, ``take COLOUR``, ``open``.

    Args:
        size: number of rooms, 2 to 50. The best way takes size + 1 steps.
        keys: number of keys, 1 to 6, each of another colour; one of them fits.
        reward: ``"sparse"``: 1 for opening the door; ``"dense"``: each step pays the share of the best way
            that it gets ahead (or back), a wrong key takes all of it; the sum over an episode that ends is 1
            or 0 just the same.
        split: ``"train"``, ``"dev"``, ``"test"`` or ``"all"``.
        render_mode: None or ``"ansi"``.

    Raises:
        ValueError: an unknown setting, or a number out of range.
    """

    _moment_type = Moment

    def __init__(
        self,
        size: int = 6,
        keys: int = 3,
        reward: str = "sparse",
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("size", size, 2, 50)
        check_integer("keys", keys, 1, len(COLOURS))
        check_choice("reward", reward, REWARDS)
        self.reward_mode = reward
        tasks, panel = corridors(size, keys, split)
        super().__init__(tasks, panel, render_mode)

    def instruction(self) -> str:
        return f"open the door with the {self.task.target} key"

    def best_action(self) -> str:
        moment, task = self.moment, self.task
        if moment.hand == task.target:
            return "open" if moment.room == task.size else "right"
        there = dict(moment.keys)[task.target]
        if there == moment.room:
            return f"take {task.target}"
        return "right" if there > moment.room else "left"

    def steps_needed(self, moment: Moment) -> int:
        """Steps of the best way from a moment to the open door; with a broken key as many as at first."""
        task = self.task
        if moment.over:
            return 0 if moment.event == "opened" else task.size + 1
        if moment.hand == task.target:
            return task.size - moment.room + 1
        there = dict(moment.keys)[task.target]
        return abs(there - moment.room) + 1 + task.size - there + 1

    def _begin(self) -> Moment:
        return Moment(1, "", self.task.keys, "begin")

    def _play(self, moment: Moment, action: str) -> tuple[Moment, float]:
        after = self._move(moment, action.lower())
        if self.reward_mode == "sparse":
            return after, self._score(after)
        whole = (
            self.task.size + 1
        )  # of any task: the corridor is walked to its end, a key taken, the door opened
        before, left = (min(self.steps_needed(m), whole) for m in (moment, after))
        return after, (before - left) / whole

    def _move(self, moment: Moment, action: str) -> Moment:
        verb, _, colour = action.partition(" ")
        if verb == "take" and colour:
            return self._take(moment, colour)
        if action in ("left", "right"):
            room = moment.room + (1 if action == "right" else -1)
            inside = 1 <= room <= self.task.size
            return replace(moment, room=room, event="moved") if inside else replace(moment, event="wall")
        return replace(moment, event=self._open(moment) if action == "open" else "unknown")

    def _take(self, moment: Moment, colour: str) -> Moment:
        if (colour, moment.room) not in moment.keys:
            return replace(moment, event="absent")
        lying = {key: room for key, room in moment.keys if key != colour}
        if moment.hand:
            lying[moment.hand] = moment.room
        return replace(moment, hand=colour, keys=_places(lying), event="took")

    def _open(self, moment: Moment) -> str:
        if moment.room != self.task.size:
            return "no door"
        if not moment.hand:
            return "locked"
        return "opened" if moment.hand == self.task.target else "broke"

    def _read(self, moment: Moment) -> str:
        if moment.event in _SAYS:
            return _SAYS[moment.event]
        if moment.event == "took":
            return f"you hold the {moment.hand} key\n"
        if moment.event == "broke":
            return f"the {moment.hand} key breaks in the lock\n"
        things = [f"{colour} key" for colour, room in moment.keys if room == moment.room]
        if moment.room == self.task.size:
            things.append("door")
        seen = f"room {moment.room}: {', '.join(things) or 'empty'}\n"
        return f"{self.instruction()}\n{seen}" if moment.event == "begin" else seen

    def _choices(self, moment: Moment) -> list[str]:
        if moment.over:
            return []
        choices = [f"take {colour}" for colour, room in moment.keys if room == moment.room]
        if moment.room > 1:
            choices.append("left")
        if moment.room < self.task.size:
            choices.append("right")
        elif moment.hand:
            choices.append("open")
        return choices

    def _score(self, moment: Moment) -> float:
        return float(self._won(moment))

    def _won(self, moment: Moment) -> bool:
        return moment.event == "opened"

    def _check(self, data: dict[str, Any]) -> Moment:
        task = self.task
        room, hand, event = data["room"], data["hand"], data["event"]
        colours = [colour for colour, _ in task.keys]
        require(data, "room", f"1 to {task.size}", type(room) is int and 1 <= room <= task.size)
        require(data, "hand", f"'' or one of {colours}", hand in ("", *colours))
        require(data, "event", f"one of {_EVENTS}", event in _EVENTS)
        holds = {"took": bool(hand), "opened": hand == task.target, "broke": hand not in ("", task.target)}
        require(data, "event", f"one that fits hand={hand!r}", holds.get(event, True))
        at_door = room == task.size or event not in ("opened", "broke", "locked")
        require(data, "event", f"one that fits room={room}", at_door)
        lying = tuple((key, place) for key, place in _pairs(data["keys"]))
        expected = [colour for colour in colours if colour != hand]
        inside = all(type(place) is int and 1 <= place <= task.size for _, place in lying)
        require(data, "keys", f"a room for each of {expected}", inside and [k for k, _ in lying] == expected)
        return Moment(room, hand, lying, event)


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    """The pairs of a sequence of pairs; nothing of anything else."""
    whole = isinstance(value, (tuple, list)) and all(
        isinstance(p, (tuple, list)) and len(p) == 2 for p in value
    )
    return [tuple(pair) for pair in value] if whole else []


def _places(lying: dict[str, int]) -> Places:
    return tuple((colour, lying[colour]) for colour in COLOURS if colour in lying)


@lru_cache(maxsize=32)
def corridors(size: int, keys: int, split: str) -> tuple[tuple[Corridor, ...], TaskPanel]:
    """The tasks of a split. All tasks are different, so none of one split is in another."""
    possible = math.comb(len(COLOURS), keys) * keys * size**keys
    tasks = distinct(lambda number: _draw(size, keys, number), TASKS, possible)
    positions = split_range(split, len(tasks))
    chosen = tuple(tasks[n] for n in positions)
    names = [f"corridor-{size}-{keys}-{n}" for n in positions]
    return chosen, make_panel("keycorridor", split, names, [asdict(task) for task in chosen])


def _draw(size: int, keys: int, number: int) -> Corridor:
    """A random corridor. Only `random()` is used: its numbers are the same in every release of Python."""
    rng = random.Random(f"corridor {size} {keys} {number}")
    colours = sorted(COLOURS, key=lambda _: rng.random())[:keys]
    lying = {colour: 1 + int(rng.random() * size) for colour in colours}
    return Corridor(size, _places(lying), colours[0])
