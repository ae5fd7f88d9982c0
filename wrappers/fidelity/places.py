"""Where code of an environment can keep data outside its instances: modules, classes, functions.

`places` lists them; `keep` remembers what lies there, `image` is what two moments are compared by, and `put`
makes a value what it was, in place as far as that goes, for others may hold it too.
"""

from __future__ import annotations

import builtins
import contextvars
import copy
import random
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from .compare import capture

MOST_PARTS = 5000  # of one value; larger ones (catalogues) are not watched

_LIBRARIES = ("gymnasium", "numpy", "wrappers", "torch", "scipy", "cloudpickle")
_FOREIGN = {*_LIBRARIES, *sys.stdlib_module_names}
_DATA_MODULES = {
    "builtins",
    "collections",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "itertools",
    "_thread",
}
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_PLAIN = (bool, int, float, str, bytes, tuple, list, dict, set, deque, np.generic)
_DEPTH = 12

Place = tuple[str, Any, str]  # description, owner, attribute


def places(env: gym.Env) -> Iterator[Place]:
    """Module variables, class attributes, and defaults, closures and attributes of functions."""
    seen: set[int] = set()
    for module in own_modules(env):
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, type(sys)):
                continue
            yield f"{module.__name__}.{name}", module, name
            if getattr(value, "__module__", None) == module.__name__ and id(value) not in seen:
                seen.add(id(value))
                if isinstance(value, type):
                    yield from _of_class(value)
                elif callable(value):
                    yield from _of_function(f"{module.__name__}.{name}", value)
    for layer in layers(env):
        for cls in type(layer).__mro__:
            if not foreign(cls.__module__) and id(cls) not in seen:
                seen.add(id(cls))
                yield from _of_class(cls)
    for owner in (builtins, sys, gym, gym.Env):
        for name, value in list(vars(owner).items()):
            if not name.startswith("__") and type(value) in _PLAIN and name not in ("modules", "path"):
                yield f"{owner.__name__}.{name}", owner, name


def own_modules(env: gym.Env) -> list[Any]:
    """Modules that belong to the environment: of its classes, of their packages, and what these import."""
    names = {cls.__module__ for layer in layers(env) for cls in type(layer).__mro__}
    packages = {name.partition(".")[0] + "." for name in names if "." in name and not foreign(name)}
    names |= {name for name in sys.modules if name.startswith(tuple(packages))}
    for name in [name for name in names if not foreign(name) and name in sys.modules]:
        for value in list(vars(sys.modules[name]).values()):
            imported = value.__name__ if isinstance(value, type(sys)) else getattr(value, "__module__", None)
            names.add(imported if isinstance(imported, str) else name)
    return [sys.modules[name] for name in sorted(names) if name in sys.modules and not foreign(name)]


def foreign(name: str) -> bool:
    """Whether a module comes with Python, or is one of the libraries that environments stand on."""
    if name.partition(".")[0] in _FOREIGN - {"__main__"}:
        return True
    return getattr(sys.modules.get(name), "__file__", None) is None and name != "__main__"


def layers(env: gym.Env) -> Iterator[gym.Env]:
    """An environment and all that it wraps, outermost first."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def _of_class(cls: type) -> Iterator[Place]:
    for name, value in list(vars(cls).items()):
        function = getattr(value, "__func__", value)
        if callable(function) and hasattr(function, "__closure__"):
            yield from _of_function(f"{cls.__qualname__}.{name}", function)
        elif not name.startswith("__"):
            yield f"{cls.__qualname__}.{name}", cls, name


def _of_function(described: str, function: Any) -> Iterator[Place]:
    function = getattr(function, "__wrapped__", function)
    for name in list(getattr(function, "__dict__", {})):
        if not name.startswith("__"):
            yield f"{described}.{name}", function, name
    for defaults in ("__defaults__", "__kwdefaults__"):
        if getattr(function, defaults, None):
            yield f"the defaults of {described}", function, defaults
    variables = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for variable, cell in zip(variables, getattr(function, "__closure__", None) or ()):
        yield f"the variable {variable} around {described}", cell, "cell_contents"


# --- values ----------------------------------------------------------------------------------------------


def value_at(owner: Any, name: str) -> Any:
    """What lies there, None for nothing."""
    try:
        return vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
    except (AttributeError, KeyError, ValueError):  # deleted since, or an empty cell
        return None


def watchable(value: Any) -> bool:
    """Data and own objects of moderate size; no code, and no objects of libraries (locks, loggers)."""
    if isinstance(value, (np.generic, np.ndarray, contextvars.ContextVar, *_GENERATORS)):
        return True
    module = type(value).__module__.partition(".")[0]
    if callable(value) or (module in _FOREIGN and module not in _DATA_MODULES):
        return False
    return _size(value, MOST_PARTS) + _size(_attributes(value), MOST_PARTS) < MOST_PARTS


def _attributes(value: Any) -> dict[str, Any]:
    return getattr(value, "__dict__", {}) if not callable(value) else {}


def _size(value: Any, limit: int, depth: int = 0) -> int:
    """Number of parts of a nested container, counted up to `limit`."""
    if isinstance(value, np.ndarray):
        return value.size // 64 + 1
    if not isinstance(value, (dict, list, set, tuple, deque)) or depth > _DEPTH:
        return 1
    count = 1
    for item in list(value.values() if isinstance(value, dict) else value):
        count += _size(item, limit, depth + 1)
        if count >= limit:
            break
    return count


UNKEPT = object()  # stands for what cannot be copied


def keep(value: Any) -> Any:
    """A copy for `put`."""
    if isinstance(value, contextvars.ContextVar):
        return (value.get(None),)
    if type(value).__module__ == "_thread":  # threading.local
        return copy.deepcopy(_attributes(value))
    try:
        return copy.deepcopy(value)
    except Exception:  # what cannot be copied cannot be watched
        return UNKEPT


def image(value: Any, depth: int = 0) -> Any:
    """What two moments of a value are compared by: generators by their states, own objects by attributes."""
    if depth > _DEPTH or value is UNKEPT:
        return None
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.Generator):
        return capture(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return capture(value.get_state(legacy=False))
    if isinstance(value, contextvars.ContextVar):
        return [image(value.get(None), depth + 1)]
    if type(value).__module__ == "itertools":
        return repr(value)  # itertools.count tells its number so
    if isinstance(value, dict):
        return {capture(key): image(item, depth + 1) for key, item in list(value.items())}
    if isinstance(value, (list, tuple, deque)):
        return [image(item, depth + 1) for item in list(value)]
    if type(value).__module__ == "_thread" or (_attributes(value) and not foreign(type(value).__module__)):
        return image(_attributes(value), depth + 1)
    return capture(value)


def put(value: Any, kept: Any) -> bool:
    """Makes a mutable value what it was when it was kept; False where that cannot be done in place."""
    if isinstance(value, random.Random):
        value.setstate(kept.getstate())
    elif isinstance(value, np.random.Generator):
        value.bit_generator.state = kept.bit_generator.state
    elif isinstance(value, np.random.RandomState):
        value.set_state(kept.get_state())
    elif isinstance(value, contextvars.ContextVar):
        value.set(copy.deepcopy(kept[0]))
    elif isinstance(value, dict):
        for key in value.keys() - kept.keys():
            del value[key]
        for key, item in kept.items():
            if key not in value or not put(value[key], item):
                value[key] = copy.deepcopy(item)
    elif isinstance(value, set):
        value.clear()
        value.update(copy.deepcopy(kept))
    elif isinstance(value, (list, bytearray)):
        value[:] = copy.deepcopy(kept)
    elif isinstance(value, deque):
        value.clear()
        value.extend(copy.deepcopy(kept))
    elif isinstance(value, np.ndarray) and value.flags.writeable and value.shape == np.shape(kept):
        value[...] = kept
    elif type(value).__module__ == "_thread":
        return put(vars(value), kept)
    elif _attributes(value) and not foreign(type(value).__module__):
        return put(vars(value), vars(kept))
    else:
        return isinstance(value, tuple) and len(value) == len(kept) and all(map(put, value, kept))
    return True
