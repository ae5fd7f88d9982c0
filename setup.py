"""Packages of the distribution; everything else stands in pyproject.toml.

The folder assets/ lies at the top of a checkout, where people look for it, and is installed inside bpo_envs,
where `bpo_envs.assets.asset` finds it. Only this file can say both "find the packages" and "this folder".
"""

from __future__ import annotations

from setuptools import find_packages, setup

ASSETS = "bpo_envs._assets"

setup(
    packages=[*find_packages(include=["bpo_envs*", "bpo_train*", "wrappers*"]), ASSETS],
    package_dir={ASSETS: "assets"},
    package_data={"*": ["py.typed"], "bpo_train": ["recipes/*.yaml"], ASSETS: ["**/*"]},
)
