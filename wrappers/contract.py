"""`SnapshotContract`: the self-check as a base class for test suites.

    from wrappers import SnapshotContract

    class TestMyEnv(SnapshotContract):
        env_id = "my/Env-v0"
        modules = ["my_package"]

gives pytest (or unittest-style runners that collect methods) one test for each check. The checks run once for
a class; a failed one fails its test with the message and the shortest program that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym

from .fidelity import CHECKS, FidelityReport, check_fidelity


class SnapshotContract:
    """Set `env_id`, or override `make_env`; the other attributes are arguments of `check_fidelity`."""

    env_id: ClassVar[str | None] = None
    kwargs: ClassVar[Mapping[str, Any]] = {}
    modules: ClassVar[Sequence[str]] = ()
    strategy: ClassVar[str] = "auto"
    quick: ClassVar[bool] = True
    more: ClassVar[Mapping[str, Any]] = {}  # further arguments: policy, options, ignore, ...

    _report: ClassVar[FidelityReport | None] = None

    def make_env(self) -> gym.Env:
        """A new environment; called in several processes."""
        raise NotImplementedError("set env_id, or override make_env")

    @classmethod
    def report(cls) -> FidelityReport:
        """The result of all checks, found once for a class."""
        if "_report" not in vars(cls):
            cls._report = check_fidelity(
                cls.env_id if cls.env_id is not None else cls().make_env,
                kwargs=cls.kwargs,
                modules=cls.modules,
                strategy=cls.strategy,
                quick=cls.quick,
                **cls.more,
            )
        assert cls._report is not None
        return cls._report


def _test(name: str) -> Callable[[SnapshotContract], None]:
    def test(self: SnapshotContract) -> None:
        result = type(self).report()[name]
        code = (result.reproduce or {}).get("code", "")
        assert result.passed, f"{name}: {result.detail}\n\n{code}"

    test.__name__ = f"test_{name.replace(' ', '_')}"
    test.__doc__ = f"The check {name!r} of docs/snapshots.md."
    return test


for _name in CHECKS:
    setattr(SnapshotContract, _test(_name).__name__, _test(_name))
