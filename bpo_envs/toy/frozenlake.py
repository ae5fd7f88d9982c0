"""``bpo/FrozenLakeText-v0``: Gymnasium's FrozenLake in words.

The ice, its holes, its slipperiness and its rewards are Gymnasium's own `FrozenLakeEnv`; this module says in
words where the walker stands, and makes tasks of generated lakes. The lake slips by the environment's
`np_random`, so a restored snapshot slips the same way again.

    walk to the goal in row 4, column 4; a hole ends the walk
    row 1, column 1: left edge, down ice, right ice, up edge
    > down
    row 2, column 1: left edge, down ice, right hole, up ice
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import MAPS, FrozenLakeEnv, generate_random_map

from bpo_envs.tasks import TaskPanel
from bpo_envs.toy.game import (
    UNKNOWN,
    TextGame,
    check_choice,
    check_integer,
    copied_panel,
    distinct,
    make_panel,
    require,
    split_range,
)

ACTIONS = ("left", "down", "right", "up")
"""In the order of Gymnasium's numbers."""

VIEWS = ("words", "map")
TASKS = 1000
"""Generated lakes of all splits together."""

_STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))  # row and column, by action
_TILES = {"S": "ice", "F": "ice", "H": "hole", "G": "goal"}
_EVENTS = ("begin", "moved", "unknown")
_DISCOUNT = 0.999  # of the expert: among ways that are equally safe, the shorter one

Lake = tuple[str, ...]
"""The rows of a map."""


@dataclass(frozen=True)
class Moment:
    """The walker's cell (row * columns + column), and what happened last."""

    cell: int
    event: str


class FrozenLakeTextEnv(TextGame[Lake, Moment]):
    """Walk over the ice to the goal. Actions: ``left``, ``down``, ``right``, ``up``.

    Args:
        map_name: ``"4x4"`` or ``"8x8"``, Gymnasium's maps, or ``"generated"``: another lake for each task.
            A fixed map is one task, the same in every split.
        desc: rows of a map of your own, of the letters S (start), F (ice), H (hole) and G (goal).
        is_slippery: the walker goes aside in two cases of three.
        size: rows and columns of generated lakes, 4 to 10.
        copies: how often the panel lists the one task of a fixed map.
        view: ``"words"``: what lies beside the walker; ``"map"``: the map, the walker's cell as ``@``.
        split: ``"train"``, ``"dev"``, ``"test"`` or ``"all"``.
        render_mode: None or ``"ansi"``.

    Raises:
        ValueError: an unknown setting, or a map without a way to the goal.
    """

    _moment_type = Moment

    def __init__(
        self,
        map_name: str = "4x4",
        desc: list[str] | tuple[str, ...] | None = None,
        is_slippery: bool = True,
        size: int = 4,
        copies: int = 1,
        view: str = "words",
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_choice("map_name", map_name, (*MAPS, "generated"))
        check_choice("view", view, VIEWS)
        check_integer("size", size, 4, 10)
        self.is_slippery = bool(is_slippery)
        self.view = view
        if desc is None and map_name == "generated":
            check_choice("copies", copies, (1,))  # there is a task for each lake
            tasks, panel = generated_lakes(size, self.is_slippery, split)
        else:
            lake = _checked(MAPS[map_name] if desc is None else desc)
            name = next((f"lake-{name}" for name, rows in MAPS.items() if tuple(rows) == lake), "lake-custom")
            panel = copied_panel("frozenlake", split, name, _content(lake, self.is_slippery), copies)
            tasks = (lake,) * len(panel)
        self._lake: FrozenLakeEnv | None = None
        self._lake_of: Lake | None = None
        super().__init__(tasks, panel, render_mode)

    @property
    def lake(self) -> FrozenLakeEnv:
        """Gymnasium's environment of the episode's task; its table `P` has all transitions."""
        if self._lake is None or self._lake_of != self.task:
            self._lake_of = self.task
            self._lake = FrozenLakeEnv(desc=list(self.task), is_slippery=self.is_slippery)
        return self._lake

    def instruction(self) -> str:
        row, column = divmod("".join(self.task).index("G"), len(self.task[0]))
        return f"walk to the goal in row {row + 1}, column {column + 1}; a hole ends the walk"

    def best_action(self) -> str:
        return ACTIONS[best_actions(self.task, self.is_slippery)[self.moment.cell]]

    def _begin(self) -> Moment:
        self.lake.np_random = self.np_random  # set anew each time: a restored state may bring another one
        cell, _ = self.lake.reset()
        return Moment(cell, "begin")

    def _play(self, moment: Moment, action: str) -> tuple[Moment, float]:
        action = action.lower()
        if action not in ACTIONS:
            return Moment(moment.cell, "unknown"), 0.0
        self.lake.np_random = self.np_random
        self.lake.s = moment.cell
        cell, reward, *_ = self.lake.step(ACTIONS.index(action))
        return Moment(cell, "moved"), float(reward)

    def _tile(self, row: int, column: int) -> str:
        inside = 0 <= row < len(self.task) and 0 <= column < len(self.task[0])
        return _TILES[self.task[row][column]] if inside else "edge"

    def _here(self, moment: Moment) -> tuple[int, int]:
        return divmod(moment.cell, len(self.task[0]))

    def _read(self, moment: Moment) -> str:
        row, column = self._here(moment)
        tile = self._tile(row, column)
        if moment.event == "unknown":
            return UNKNOWN
        if tile != "ice":
            return "you reach the goal\n" if tile == "goal" else "you fall into a hole\n"
        if self.view == "map":
            seen = "".join(self._map_row(r, moment) for r in range(len(self.task)))
        else:
            around = zip(ACTIONS, _STEPS)
            beside = ", ".join(
                f"{name} {self._tile(row + down, column + right)}" for name, (down, right) in around
            )
            seen = f"row {row + 1}, column {column + 1}: {beside}\n"
        return f"{self.instruction()}\n{seen}" if moment.event == "begin" else seen

    def _map_row(self, number: int, moment: Moment) -> str:
        row, column = self._here(moment)
        letters = self.task[number]
        return (letters[:column] + "@" + letters[column + 1 :] if number == row else letters) + "\n"

    def _choices(self, moment: Moment) -> list[str]:
        return list(ACTIONS) if self._tile(*self._here(moment)) == "ice" else []

    def _score(self, moment: Moment) -> float:
        return float(self._won(moment))

    def _won(self, moment: Moment) -> bool:
        return self._tile(*self._here(moment)) == "goal"

    def _check(self, data: dict[str, Any]) -> Moment:
        cell, event = data["cell"], data["event"]
        cells = len(self.task) * len(self.task[0])
        require(data, "cell", f"0 to {cells - 1}", type(cell) is int and 0 <= cell < cells)
        require(data, "event", f"one of {_EVENTS}", event in _EVENTS)
        moment = Moment(cell, event)
        fits = bool(self._choices(moment)) or event == "moved"
        require(data, "event", "'moved' where the walk has ended", fits)
        return moment


@lru_cache(maxsize=4096)
def best_actions(lake: Lake, is_slippery: bool) -> tuple[int, ...]:
    """The best action of each cell, by value iteration on Gymnasium's table of transitions."""
    table = FrozenLakeEnv(desc=list(lake), is_slippery=is_slippery).P
    reward = np.zeros((len(table), len(ACTIONS)))
    goes_on = np.zeros((len(table), len(ACTIONS), len(table)))
    for cell, action in np.ndindex(reward.shape):
        for chance, after, paid, ended in table[cell][action]:
            reward[cell, action] += chance * paid
            goes_on[cell, action, after] += chance * (not ended)
    value, change = np.zeros(len(table)), 1.0
    while change > 1e-10:
        q = reward + _DISCOUNT * goes_on @ value
        value, change = q.max(axis=1), np.abs(q.max(axis=1) - value).max()
    return tuple(int(action) for action in q.round(6).argmax(axis=1))  # equally good: the first


@lru_cache(maxsize=16)
def generated_lakes(size: int, is_slippery: bool, split: str) -> tuple[tuple[Lake, ...], TaskPanel]:
    """The generated lakes of a split. All are different, so none of one split is in another."""
    lakes = _lakes(size)
    positions = split_range(split, len(lakes))
    chosen = tuple(lakes[n] for n in positions)
    names = [f"lake-{size}-{n}" for n in positions]
    return chosen, make_panel("frozenlake", split, names, [_content(lake, is_slippery) for lake in chosen])


@lru_cache(maxsize=16)
def _lakes(size: int) -> tuple[Lake, ...]:
    return distinct(lambda number: tuple(generate_random_map(size, seed=number)), TASKS)


def _content(lake: Lake, is_slippery: bool) -> dict[str, Any]:
    return {"map": list(lake), "is_slippery": is_slippery}


def _checked(desc: Any) -> Lake:
    """The rows of a map, if it is one with one start, one goal and a way between them."""
    rows = tuple(desc) if isinstance(desc, (list, tuple)) else ()
    letters = "".join(row for row in rows if isinstance(row, str))
    whole = (
        len(letters) == sum(len(row) for row in rows if isinstance(row, str))
        and len(set(map(len, rows))) == 1
    )
    if not whole or set(letters) - set("SFHG") or letters.count("S") != 1 or letters.count("G") != 1:
        raise ValueError(
            f"desc={desc!r} is no map; expected a list of rows of equal length, of the letters S (one, the "
            "start), F (ice), H (hole) and G (one, the goal)"
        )
    if not _passable(rows):
        raise ValueError(f"desc={desc!r} has no way from S to G; open one")
    return rows


def _passable(lake: Lake) -> bool:
    columns = len(lake[0])
    tiles = {divmod(n, columns): tile for n, tile in enumerate("".join(lake))}
    seen, frontier = set(), [cell for cell, tile in tiles.items() if tile == "S"]
    while frontier:
        row, column = cell = frontier.pop()
        if cell in seen or tiles.get(cell, "H") == "H":
            continue
        seen.add(cell)
        frontier += [(row + down, column + right) for down, right in _STEPS]
    return any(tiles[cell] == "G" for cell in seen)
