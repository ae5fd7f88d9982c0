"""What the original did on recorded episodes, and what we do on the same actions.

The layout of the files stands in tests/fixtures/webshop_v1/README.md.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bpo_envs.webshop.env import WebShopEnv

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "webshop_v1"
MODES = ("text", "text_rich", "url")
SESSION_FIELDS = ("asin", "options", "keywords", "page", "asins", "actions")


def read_lines(path: Path) -> list[Any]:
    """The rows of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_gz(path: Path) -> Any:
    """The value of a gzipped JSON file."""
    return json.loads(gzip.decompress(path.read_bytes()))


def as_json(value: Any) -> Any:
    """A value as it comes back from JSON: tuples are lists."""
    return json.loads(json.dumps(value))


def make(path: Path, row: dict[str, Any], **settings: Any) -> WebShopEnv:
    """The environment in which an episode of that file was recorded."""
    return WebShopEnv(
        goals="human" if row.get("human_goals") else "synthetic",
        split="all",
        show_attrs="show_attrs" in path.name,
        special_words="special_words" in path.name,
        **settings,
    )


def observe(env: WebShopEnv) -> dict[str, Any]:
    """The current page in the recorded modes, and what it offers."""
    return {"obs": {mode: env.page(mode) for mode in MODES}, "available_actions": env.available_actions()}


def session_of(env: WebShopEnv) -> dict[str, Any]:
    """The session as the original's log has it."""
    fields = {name: getattr(env.session, name) for name in SESSION_FIELDS}
    return as_json({**fields, "asins": sorted(env.session.asins)})


def replay(path: Path, **settings: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Act out every episode of a file, up to the purchase.

    Yields:
        Where we are, what the original recorded there, and the same of ours.
    """
    for number, row in enumerate(read_lines(path)):
        env = make(path, row, **settings)
        env.reset(options={"goal_idx": row["goal_idx"]})
        yield f"{path.name} {number} reset", row["reset"], observe(env)
        for position, step in enumerate(row["steps"]):
            _, reward, terminated, truncated, info = env.step(step["action"])
            ours = {
                **observe(env),
                "reward": reward,
                "done": terminated,
                "truncated": truncated,
                "session": session_of(env),
                "verbose_info": info.get("reward_parts"),
            }
            yield f"{path.name} {number} step {position} {step['action']!r}", step, ours
            if terminated:
                break


def compare(path: Path, **settings: Any) -> tuple[int, list[str]]:
    """Act out a file; return the number of pages and every difference in what both have."""
    pages, differences = 0, []
    for where, recorded, ours in replay(path, **settings):
        pages += 1
        for name in ours.keys() & recorded.keys():
            if recorded[name] != ours[name]:
                differences.append(f"{where}: {name} is {ours[name]!r}, recorded was {recorded[name]!r}")
    return pages, differences
