"""How to make an environment, here and in other processes.

A target travels to other processes as bytes of cloudpickle (which Gymnasium depends on), so factories may be
lambdas and local classes. They are the user's own code on the user's own machine; snapshots never travel so.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium as gym

from .snapshot_env import SnapshotEnv


class CannotMake(RuntimeError):
    """The environment could not be imported, made or reset, so that nothing could be checked."""


@dataclass
class Target:
    """An environment id or a factory, with what it takes to call it.

    modules: imported before anything is made.
    spec: the entry of this process's registry for an id, for processes where nobody registered it.
    """

    env: str | Callable[..., gym.Env]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    modules: Sequence[str] = ()
    strategy: str = "auto"
    spec: Any = None

    @property
    def name(self) -> str:
        if isinstance(self.env, str):
            return self.env
        return getattr(self.env, "__qualname__", None) or repr(self.env)

    def make(self) -> SnapshotEnv:
        """A new instance with SnapshotEnv outermost. Raises what the environment raises."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            env = self._make()
        if isinstance(env, SnapshotEnv) and self.strategy == "auto":
            return env
        return SnapshotEnv(env, self.strategy)

    def _make(self) -> gym.Env:
        for module in self.modules:
            importlib.import_module(module)
        if not isinstance(self.env, str):
            env = self.env(**self.kwargs)
            if not isinstance(env, gym.Env):
                raise TypeError(f"the factory {self.name} returned {type(env).__name__}, not a gymnasium.Env")
            return env
        if self.spec is not None and self.spec.id not in gym.registry:
            gym.registry[self.spec.id] = self.spec
        return gym.make(self.env, **self.kwargs)


def target_of(
    env: str | Callable[..., gym.Env], kwargs: Mapping[str, Any], modules: Sequence[str], strategy: str
) -> Target:
    """A target that can travel. Raises TypeError for what is neither an id nor a factory."""
    if isinstance(env, gym.Env) or not (isinstance(env, str) or callable(env)):
        raise TypeError(
            f"expected an environment id or a function that makes one, got {type(env).__name__}; "
            "many instances are needed, so one instance cannot do"
        )
    spec = gym.registry.get(env.rpartition(":")[2]) if isinstance(env, str) else None
    return Target(env, dict(kwargs), tuple(modules), strategy, spec)


def dump(value: Any) -> bytes:
    """Bytes for `load` in another process, with the paths it needs to import by."""
    path = [str(Path(entry).resolve()) for entry in sys.path]
    return cloudpickle.dumps((path, _own_files(), cloudpickle.dumps(value)))


def load(data: bytes) -> Any:
    """What `dump` was given. Modules that no path leads to are loaded from the files they had there."""
    path, files, value = cloudpickle.loads(data)
    sys.path[:] = path
    sys.meta_path.append(_FileFinder(files))
    return cloudpickle.loads(value)


def _own_files() -> dict[str, str]:
    """Imported modules that were not installed, with their files: pytest imports some off the path."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        standard = name.partition(".")[0] in sys.stdlib_module_names or name == "__main__"
        if file and file.endswith(".py") and not standard and "site-packages" not in Path(file).parts:
            found[name] = str(Path(file).resolve())
    return found


def process_environment(hash_seed: int | None = None) -> dict[str, str]:
    """Environment variables of a Python process that can import this package."""
    path = os.environ.get("PYTHONPATH")
    packages = str(Path(__file__).resolve().parents[1])
    variables = {**os.environ, "PYTHONPATH": packages + (os.pathsep + path if path else "")}
    if hash_seed is not None:
        variables["PYTHONHASHSEED"] = str(hash_seed)
    return variables


class _FileFinder(importlib.abc.MetaPathFinder):
    """The last resort of the import system: modules by file, their parents as empty packages."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        file = self._files.get(name)
        if file is None:
            parent = any(other.startswith(name + ".") for other in self._files)
            return importlib.machinery.ModuleSpec(name, None, is_package=True) if parent else None
        package = [str(Path(file).parent)] if Path(file).name == "__init__.py" else None
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=package)
