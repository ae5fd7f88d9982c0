"""check_fidelity and `python -m wrappers.check`, whole: processes, exit statuses, reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import gymnasium as gym
import numpy as np
import pytest

from basket import Basket
from wrappers import SnapshotContract, SnapshotEnv, check_fidelity
from wrappers.fidelity import CHECKS, CannotMake

HERE = ["coverage", "round trip", "cost"]  # enough of them where the point is another


@pytest.fixture(scope="module")
def report():
    return check_fidelity("test/Basket-v0", quick=True)


def test_a_healthy_environment_passes_every_check(report):
    assert report.passed, report
    assert [check.name for check in report.checks] == list(CHECKS)
    assert [check.name for check in report.checks if check.skipped] == ["distribution"]
    assert report.capability == "exact" and report.env == "test/Basket-v0"


def test_the_report_tells_the_cost_and_what_was_ignored(report):
    assert report.cost["c_snap_seconds"] > 0 and report.cost["bytes"] > 100
    assert {"share_of_rollout", "break_even_c_snap_seconds", "M", "K"} <= report.cost.keys()
    assert "info.episode.t" in report.ignored


class Forgetting(Basket):
    """Steps are not in its state."""

    def get_state(self):
        return {"prices": self.prices, "steps": 0}


def test_a_failure_names_check_step_field_values_and_the_shortest_actions():
    report = check_fidelity(Forgetting, quick=True, checks=["round trip"])
    found = report["round trip"]
    assert "observation[2]: expected 2.0, found 1.0" in found.detail
    assert "steps (0, not 1)" in found.detail  # the attribute that differs
    assert len(found.reproduce["actions"]) == 2 and found.reproduce["seed"] is not None
    operations = found.reproduce["operations"]
    assert [line.partition("(")[0] for line in operations] == [
        "a = make", "a.reset", "a.step", "s = a.snapshot", "a.restore", "a.step"
    ]  # fmt: skip


def test_a_shortened_program_shows_the_failure_when_it_is_run():
    code = check_fidelity(Forgetting, quick=True, checks=["round trip"])["round trip"].reproduce["code"]
    names: dict = {"make": lambda: SnapshotEnv(Forgetting())}
    *lines, last = code.splitlines()
    exec("\n".join(lines), names)
    assert eval(last, names)[0][2] == 1.0  # two steps were taken


def test_factories_may_be_lambdas_and_local_classes():
    class Local(Basket):
        pass

    assert check_fidelity(lambda: Local(), quick=True, checks=[*HERE, "portability", "determinism"]).passed


def test_a_strategy_is_passed_on():
    report = check_fidelity("test/Mute-v0", strategy="replay", quick=True, checks=HERE)
    assert report.passed and report.capability == "replay"
    report = check_fidelity("test/Mute-v0", quick=True, checks=HERE)
    assert [check.status for check in report.checks] == ["FAILED", "skipped", "skipped"]


def test_options_policy_and_normalize_are_used():
    seen = check_fidelity(
        Basket,
        quick=True,
        checks=["round trip"],
        options={"things": 3},
        policy=lambda observation, info, env: int(len(info["prices"]) < 5),
        normalize=lambda answer: {**answer, "info": {}},
    )
    assert seen.passed and any("normalize" in text or "lambda" in text for text in seen.ignored)


class Unequal:
    """Has no equality."""


class Objects(Basket):
    def observe(self):
        observation, info = super().observe()
        return observation, {**info, "handle": Unequal()}


def test_objects_without_equality_are_reported_as_not_compared():
    report = check_fidelity(Objects, quick=True, checks=["round trip", "coverage", "portability"])
    assert report.passed and "info.handle (objects without equality)" in report.ignored
    assert report["portability"].skipped


# --- what a check survives -------------------------------------------------------------------------------


class Hanging(Basket):
    def set_state(self, state):
        while True:
            pass


class Crashing(Basket):
    def set_state(self, state):
        os.kill(os.getpid(), 11)


class Exiting(Basket):
    def set_state(self, state):
        os._exit(0)


class Hungry(Basket):
    def set_state(self, state):
        np.ones(2**34)


class Noisy(Basket):
    """Prints, and warns."""

    def step(self, action):
        print("step", action, flush=True)
        os.write(2, b"noise\n")
        return super().step(action)


@pytest.mark.parametrize(
    ("animal", "complaint"),
    [
        (Hanging, "hung: no end after"),
        (Crashing, "SIGSEGV"),
        (Exiting, "ended itself with status 0"),
        (Hungry, "MemoryError"),
    ],
)
def test_what_breaks_a_check_fails_this_check_only(animal, complaint):
    limits = {"time_limit": 2.0, "memory_limit": 2 << 30}
    report = check_fidelity(animal, quick=True, checks=["round trip", "background work"], **limits)
    assert not report["round trip"].passed
    assert complaint in report["round trip"].detail
    if animal is Hanging:
        assert "set_state" in report["round trip"].detail


def test_output_of_the_environment_does_not_disturb():
    assert check_fidelity(Noisy, quick=True, checks=["round trip"]).passed


class Unmakeable(Basket):
    def __init__(self):
        raise OSError("no data here")


class Unresettable(Basket):
    def reset(self, **kwargs):
        raise OSError("no data there")


class HangsWhenMade(Basket):
    def __init__(self):
        super().__init__()
        while True:
            pass


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (Unmakeable, "OSError: no data here"),
        (Unresettable, "OSError: no data there"),
        ("nowhere/Nothing-v0", "amespace"),
        (lambda: 7, "returned int, not a gymnasium.Env"),
        (HangsWhenMade, "hung"),
    ],
    ids=["make", "reset", "id", "factory", "hang"],
)
def test_what_cannot_be_made_or_reset_is_told_apart(make, complaint):
    with pytest.raises(CannotMake, match=complaint):
        check_fidelity(make, quick=True, time_limit=2.0)


def test_unknown_checks_are_refused():
    with pytest.raises(ValueError, match="unknown check 'speed'"):
        check_fidelity(Basket, checks=["speed"])


# --- the command -----------------------------------------------------------------------------------------

MODULE = """
import gymnasium as gym
from gymnasium import spaces

class Counter(gym.Env):
    observation_space, action_space = spaces.Discrete(100), spaces.Discrete(2)

    def __init__(self, forget=False):
        self.forget = forget

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return 0, {}

    def step(self, action):
        self.count += int(action)
        return self.count, 0.0, self.count > 5, False, {}

    def get_state(self):
        return None if self.forget else self.count

    def set_state(self, state):
        self.count = state or 0

class Mute(Counter):
    get_state = set_state = None

gym.register("mine/Counter-v0", Counter)
gym.register("mine/Mute-v0", Mute)
"""


@pytest.fixture
def command(tmp_path, root):
    (tmp_path / "my_package.py").write_text(textwrap.dedent(MODULE))

    def run(*arguments: str) -> subprocess.CompletedProcess:
        line = [sys.executable, "-m", "wrappers.check", *arguments, "--quick"]
        variables = {**os.environ, "PYTHONPATH": str(root)}
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=variables)

    return run


def test_exit_status_0_a_table_progress_and_a_json_file(command, tmp_path):
    done = command("mine/Counter-v0", "--import", "my_package", "--json", "report.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        done.stdout.startswith("mine/Counter-v0: passed 13 checks")
        and "[ 3/14] round trip ... ok" in done.stderr
    )
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["passed"] and data["env"] == "mine/Counter-v0" and len(data["checks"]) == 14


def test_exit_status_1_where_a_check_fails(command):
    done = command(
        "mine/Counter-v0", "--import", "my_package", "--kwargs", '{"forget": true}', "--check", "round trip"
    )
    assert done.returncode == 1
    assert "round trip       FAILED" in done.stdout and "round trip, to see it:" in done.stdout


def test_exit_status_1_where_nothing_can_be_captured(command):
    done = command("mine/Counter-v0", "--import", "my_package", "--check", "coverage", "--strategy", "replay")
    assert done.returncode == 0
    assert (
        command("test/Mute-v0", "--import", "basket", "--check", "coverage").returncode == 2
    )  # not on the path


@pytest.mark.parametrize(
    "arguments",
    [("mine/Counter-v0",), ("mine/Counter-v0", "--import", "nothing_here"), ("my_package:mine/Other-v0",)],
)
def test_exit_status_2_where_it_cannot_be_imported_or_made(command, arguments):
    done = command(*arguments)
    assert done.returncode == 2 and "python -m wrappers.check:" in done.stderr


# --- the contract as a test class ------------------------------------------------------------------------


class TestBasket(SnapshotContract):
    """What a user writes."""

    env_id = "test/Basket-v0"


class Sick(SnapshotContract):
    more = {"checks": ["round trip"]}  # noqa: RUF012

    def make_env(self) -> gym.Env:
        return Forgetting()


def test_a_failed_check_fails_its_test_with_the_reason():
    with pytest.raises(AssertionError, match=r"round trip: .*observation\[2\].*\n\na = make\(\)"):
        Sick().test_round_trip()
    assert {name for name in dir(Sick) if name.startswith("test_")} == {
        f"test_{name.replace(' ', '_')}" for name in CHECKS
    }
