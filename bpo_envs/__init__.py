"""Environments for language agents that you can go back in.

Importing this package registers the suite's ids with Gymnasium, so that ``gymnasium.make("bpo/WebShop-v0")``
finds them (``gymnasium.make("bpo_envs:bpo/WebShop-v0")`` needs no import line). Entry points are strings:
what an environment needs is imported when it is made, and importing the package stays cheap.

Every id has `wrappers.SnapshotEnv` outermost, and no vector entry point: Gymnasium refuses to combine the
two, and ``gymnasium.make_vec`` builds its own vectors from single environments.
"""

from __future__ import annotations

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

__all__ = ["ENV_IDS"]

_SNAPSHOT = WrapperSpec(name="SnapshotEnv", entry_point="wrappers.snapshot_env:SnapshotEnv", kwargs={})

# id -> entry point and step limit
_SUITE = {
    "bpo/WebShop-v0": ("bpo_envs.webshop.env:WebShopEnv", 50),
    "bpo/ToyMDP-v0": ("bpo_envs.toy.process:ToyMDPEnv", 200),
    "bpo/KeyCorridor-v0": ("bpo_envs.toy.keycorridor:KeyCorridorEnv", 100),
    "bpo/FrozenLakeText-v0": ("bpo_envs.toy.frozenlake:FrozenLakeTextEnv", 100),
}

ENV_IDS = tuple(_SUITE)
"""The ids of the suite."""


def _register() -> None:
    for env_id, (entry_point, max_episode_steps) in _SUITE.items():
        gym.registry.pop(env_id, None)  # a reload of this module replaces its ids in silence
        gym.register(
            env_id,
            entry_point=entry_point,
            max_episode_steps=max_episode_steps,
            additional_wrappers=(_SNAPSHOT,),
        )


_register()
