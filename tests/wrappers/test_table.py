"""The table of wrapper memories holds against the source of the installed Gymnasium.

Every attribute that a wrapper writes outside its constructor is memory or scratch by the table. A wrapper
of a newer release that is missing, or remembers more, fails here by name.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium import wrappers as gymnasium_wrappers
from gymnasium.wrappers.utils import RunningMeanStd

from wrappers import adapters
from wrappers.table import TABLE

CONSTRUCTION = {"__init__", "__getstate__", "__setstate__", "__del__"}
MUTATORS = {"append", "appendleft", "extend", "clear", "pop", "popleft", "insert", "update", "add", "remove"}

NAMES = [name for name in gymnasium_wrappers.__all__ if name != "vector"]
SOURCES = {
    node.name: node
    for file in Path(gymnasium_wrappers.__file__).parent.glob("*.py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef)
}


def classes(name: str) -> list[ast.ClassDef]:
    """The source of a wrapper of Gymnasium and of its bases short of gym.Wrapper; nothing is imported.

    (Some wrappers convert to libraries that need not be installed.)
    """
    if name not in SOURCES:
        return []
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in SOURCES[name].bases]
    names = [base.id for base in bases if isinstance(base, ast.Name)]
    return [SOURCES[name], *(source for base in names for source in classes(base))]


def written(target: ast.AST) -> set[str]:
    """Attributes of self that an assignment to `target` changes, also by index."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*map(written, target.elts))
    while isinstance(target, ast.Subscript):
        target = target.value
    of_self = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    return {target.attr} if of_self and target.value.id == "self" else set()


def written_in(function: ast.FunctionDef) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.Delete)):
            found = found.union(*map(written, node.targets))
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            found |= written(node.target)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                found |= written(node.func.value)
            found = found.union(*(written(word.value) for word in node.keywords if word.arg == "out"))
    return found


def written_after_construction(sources: list[ast.ClassDef]) -> set[str]:
    functions = [node for source in sources for node in ast.walk(source) if isinstance(node, ast.FunctionDef)]
    found = [written_in(function) for function in functions if function.name not in CONSTRUCTION]
    return set().union(*found) - {"_cached_spec"}


@pytest.mark.parametrize("name", NAMES)
def test_every_wrapper_is_in_the_table_with_all_it_writes(name):
    assert name in TABLE, f"{name} is new in Gymnasium {gym.__version__}: add it to wrappers/table.py"
    memory = TABLE[name]
    known = {path.split(".")[0] for path in memory.fields} | set(memory.scratch)
    if name in ("NormalizeObservation", "NormalizeReward"):
        # `obs_rms.update(...)` counts as a write of obs_rms; what it writes inside is checked below
        assert {path.split(".")[1] for path in memory.fields if "." in path} == set(vars(RunningMeanStd()))
    assert written_after_construction(classes(name)) <= known


@pytest.mark.parametrize("name", NAMES)
def test_every_attribute_of_the_table_exists_in_the_source(name):
    source = "".join(ast.unparse(source) for source in classes(name))
    for path in [*TABLE[name].fields, *TABLE[name].scratch]:
        assert f"self.{path.split('.')[0]}" in source, f"{name} has no {path}"


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("TimeLimit", {"_elapsed_steps"}),
        ("StickyAction", {"last_action", "is_sticky_actions", "num_repeats", "repeats_taken"}),
        ("FrameStackObservation", {"obs_queue", "padding_value"}),
        ("AtariPreprocessing", {"lives", "game_over", "obs_buffer"}),
        ("ClipReward", set()),
    ],
)
def test_the_reading_of_source_finds_what_these_wrappers_are_known_to_write(name, attributes):
    assert written_after_construction(classes(name)) == attributes


DRAWING = {
    "screen", "clock", "isopen", "surf", "window", "window_surface", "taxi_imgs", "taxi_full_imgs",
    "passenger_img", "destination_img", "house_img", "background_img", "ice_img", "hole_img",
    "ice_crack_imgs", "agent_img", "goal_flag_img", "letter_s_img", "letter_g_img", "ground_img",
    "cliff_imgs", "start_img", "goal_img",
}  # fmt: skip
BUILT = {"P"}  # transition tables, filled by helpers of the constructor


@pytest.mark.parametrize("path", adapters.FIELDS)
def test_every_adapter_captures_all_that_its_environment_writes(path):
    module, name = path.split(":")
    source = ast.parse(inspect.getsource(getattr(importlib.import_module(module), name))).body
    assert written_after_construction(source) - DRAWING - BUILT == set(adapters.FIELDS[path])


def test_every_toy_text_and_classic_control_environment_has_an_adapter():
    entry_points = {
        spec.entry_point
        for spec in gym.registry.values()
        if isinstance(spec.entry_point, str)
        and spec.entry_point.startswith(("gymnasium.envs.toy_text", "gymnasium.envs.classic_control"))
    }
    assert entry_points
    for entry_point in entry_points:
        module, name = entry_point.split(":")
        kind = getattr(importlib.import_module(module), name)
        assert f"{kind.__module__}:{name}" in adapters.FIELDS
