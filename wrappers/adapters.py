"""Explicit state for environments that were not written for it: Toy Text, Classic Control, ALE, MuJoCo.

An adapter stands in for the get_state()/set_state(state) that the environment lacks. It is chosen by the
exact class, never for a subclass, which may remember more. Nothing is imported before it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .errors import SnapshotError, brief

Check = Callable[[Any, Any], bool]  # may this value stand in that environment?


def _observation(value: Any, env: Any) -> bool:
    return bool(env.observation_space.contains(value))


def _action(value: Any, env: Any) -> bool:
    return value is None or bool(env.action_space.contains(value))


def _count(value: Any, env: Any) -> bool:
    return value is None or (isinstance(value, (int, np.integer)) and bool(value >= 0))


def _numbers(size: int | None) -> Check:
    def check(value: Any, env: Any) -> bool:
        found = np.asarray(value)
        return found.dtype.kind in "iuf" and found.ndim == 1 and (size is None or found.size == size)

    return check


def _cards(value: Any, env: Any) -> bool:
    whole = type(value) is list and all(isinstance(card, (int, np.integer)) for card in value)
    return whole and len(value) >= 2 and all(1 <= card <= 10 for card in value)


def _text(value: Any, env: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any, env: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _torque(value: Any, env: Any) -> bool:
    return value is None or isinstance(value, (float, np.floating))


_GRID: Mapping[str, Check] = {"s": _observation, "lastaction": _action}

# class -> the attributes that reset and step leave behind, but for those that only draw
FIELDS: Mapping[str, Mapping[str, Check]] = {
    "gymnasium.envs.toy_text.blackjack:BlackjackEnv": {
        "player": _cards,
        "dealer": _cards,
        "dealer_top_card_suit": _text,
        "dealer_top_card_value_str": _text,
    },
    "gymnasium.envs.toy_text.cliffwalking:CliffWalkingEnv": _GRID,
    "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv": _GRID,
    "gymnasium.envs.toy_text.taxi:TaxiEnv": {**_GRID, "fickle_step": _flag, "taxi_orientation": _count},
    "gymnasium.envs.classic_control.acrobot:AcrobotEnv": {"state": _numbers(4)},
    "gymnasium.envs.classic_control.cartpole:CartPoleEnv": {
        "state": _numbers(4),
        "steps_beyond_terminated": _count,
    },
    "gymnasium.envs.classic_control.continuous_mountain_car:Continuous_MountainCarEnv": {
        "state": _numbers(2)
    },
    "gymnasium.envs.classic_control.mountain_car:MountainCarEnv": {"state": _numbers(2)},
    "gymnasium.envs.classic_control.pendulum:PendulumEnv": {"state": _numbers(2), "last_u": _torque},
}


class FieldsAdapter:
    """State that lies in a few attributes of the environment."""

    def __init__(self, env: Any, fields: Mapping[str, Check]) -> None:
        self._env, self._fields = env, fields

    def get_state(self) -> dict[str, Any]:
        try:
            return {name: getattr(self._env, name) for name in self._fields}
        except (
            AttributeError
        ) as error:  # another release of Gymnasium than the one this table was held against
            raise SnapshotError(f"{error}; choose strategy='replay' or strategy='deepcopy'") from None

    def set_state(self, state: Any) -> None:
        if type(state) is not dict or state.keys() != self._fields.keys():
            raise SnapshotError(f"expected the attributes {', '.join(self._fields)}, got {brief(state)}")
        for name, check in self._fields.items():
            if not check(state[name], self._env):
                raise SnapshotError(f"{name} of {type(self._env).__name__} cannot be {brief(state[name])}")
        for name, value in state.items():
            setattr(self._env, name, value)


class AtariAdapter:
    """ALE's own state, its random generator included.

    That state lacks one thing, the action that ALE would repeat when it is sticky (measured with ale-py
    0.12: a restored game takes another course in a fifth of the cases). So the emulator's stickiness is
    refused; Gymnasium's wrapper StickyAction does the same and can be captured.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        if env.ale.getFloat("repeat_action_probability") > 0:
            raise SnapshotError(
                "ALE does not put its sticky action into its state; make the environment with "
                "repeat_action_probability=0 (and wrap it in gymnasium.wrappers.StickyAction), "
                "or choose strategy='replay'"
            )

    def get_state(self) -> bytes:
        return self._env.ale.cloneState(include_rng=True).__getstate__()

    def set_state(self, state: Any) -> None:
        if type(state) is not bytes:
            raise SnapshotError(f"expected the bytes of an ALE state, got {brief(state)}")
        ale_py = importlib.import_module("ale_py")
        try:
            self._env.ale.restoreState(ale_py.ALEState(state))
        except Exception as error:  # the binding raises SystemError for bytes it cannot read
            raise SnapshotError(f"ALE cannot read the state: {error}") from None


class MujocoAdapter:
    """The integration state of the simulator, and every derived array as it was.

    After a step MuJoCo's derived quantities belong to the moment before its last integration, and the
    environments of Gymnasium read some of them (body positions, contact forces) before they step: computing
    them afresh from the restored state would give other rewards.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._mujoco = importlib.import_module("mujoco")
        spec = self._mujoco.mjtState.mjSTATE_INTEGRATION
        self._spec = spec.value if hasattr(spec, "value") else spec
        self._size = self._mujoco.mj_stateSize(env.model, self._spec)
        # Arrays of contacts and constraints vary in size and are empty at first; each step computes them.
        self._derived = _arrays(self._mujoco.MjData(env.model))

    def get_state(self) -> dict[str, Any]:
        integration = np.empty(self._size)
        self._mujoco.mj_getState(self._env.model, self._env.data, integration, self._spec)
        return {
            "integration": integration,
            "derived": {name: getattr(self._env.data, name) for name in self._derived},
        }

    def set_state(self, state: Any) -> None:
        if type(state) is not dict or state.keys() != {"integration", "derived"}:
            raise SnapshotError(f"expected a MuJoCo state, got {brief(state)}")
        model, data, integration = self._env.model, self._env.data, state["integration"]
        if np.shape(integration) != (self._size,) or type(state["derived"]) is not dict:
            raise SnapshotError(f"expected {self._size} numbers of MuJoCo state, got {brief(integration)}")
        self._mujoco.mj_setState(model, data, integration, self._spec)
        self._mujoco.mj_forward(model, data)  # contacts and constraints get their memory
        self._mujoco.mj_setState(model, data, integration, self._spec)  # the solver's warm start moved
        for name in self._derived:
            array, saved = getattr(data, name), state["derived"].get(name)
            if type(saved) is not np.ndarray or (saved.shape, saved.dtype) != (array.shape, array.dtype):
                raise SnapshotError(f"MuJoCo's {name} cannot be {brief(saved)}")
            array[:] = saved


def _arrays(data: Any) -> list[str]:
    named = [(name, getattr(data, name)) for name in dir(data) if not name.startswith("_")]
    return [name for name, value in named if isinstance(value, np.ndarray) and value.size]


def adapter_for(env: Any) -> FieldsAdapter | AtariAdapter | MujocoAdapter | None:
    """The adapter of a base environment, or None. Raises SnapshotError where its settings rule it out."""
    name = f"{type(env).__module__}:{type(env).__name__}"
    if name in FIELDS:
        return FieldsAdapter(env, FIELDS[name])
    if name == "ale_py.env:AtariEnv":
        return AtariAdapter(env)
    if name.startswith("gymnasium.envs.mujoco.") and hasattr(env, "data") and hasattr(env, "model"):
        return MujocoAdapter(env)
    return None
