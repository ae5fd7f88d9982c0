"""One line of text that says how an environment was built, so that snapshots of another are refused."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from . import codec
from .errors import CodecError
from .snapshot import Origin
from .stack import Stack


def origin_of(stack: Stack, capability: str) -> Origin:
    """Id, constructor arguments and wrappers (outermost first, step limit included) of an environment.

    Arguments at their default are left out, so that naming a default changes nothing; `render_mode` is left
    out because it changes no dynamics. A base environment made without an id is told apart by its spaces.
    """
    base, kind = stack.base, type(stack.base)
    if base.spec is not None:
        env_id, settings = base.spec.id, _call(kind, base.spec.kwargs)
    else:
        env_id = f"{kind.__module__}.{kind.__qualname__}"
        settings = f"({_text(repr(base.action_space))} -> {_text(repr(base.observation_space))})"
    wrappers = [
        type(layer.wrapper).__qualname__ + _call(type(layer.wrapper), _saved_kwargs(layer.wrapper))
        for layer in stack.layers
    ]
    return Origin(env_id, " < ".join([*wrappers, kind.__qualname__ + settings]), capability)


def _saved_kwargs(wrapper: gym.Wrapper) -> Mapping[str, Any]:
    return getattr(wrapper, "_saved_kwargs", {})


def _call(kind: type, kwargs: Mapping[str, Any]) -> str:
    """The arguments that differ from the defaults of the constructor of `kind`, as in a call."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        parameters = {}
    given = {
        name: _text(value) for name, value in sorted(kwargs.items()) if name not in ("env", "render_mode")
    }
    default = {name: _text(parameter.default) for name, parameter in parameters.items()}
    changed = [f"{name}={text}" for name, text in given.items() if default.get(name) != text]
    return f"({', '.join(changed)})"


def _text(value: Any) -> str:
    """Short, and the same in every process for equal values: no addresses, long ones by their digest."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        encoded = codec.encode(value)
    except CodecError:
        name = getattr(value, "__qualname__", None) or type(value).__qualname__
        text = repr(value)
        return name if " at 0x" in text or len(text) > 80 else text
    if len(encoded) > 80:
        return f"{type(value).__name__}#{codec.digest(encoded).hex()[:12]}"
    return repr(value)
