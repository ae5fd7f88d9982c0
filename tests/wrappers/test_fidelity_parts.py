"""The parts of the self-check: comparison, the oracle, programs, shortening, disturbances, marks."""

from __future__ import annotations

import datetime
import enum
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basket import DROP, PAY, TAKE, Basket
from wrappers import SnapshotEnv
from wrappers.fidelity import disturb
from wrappers.fidelity.compare import ABSENT, Comparison, capture
from wrappers.fidelity.oracle import Oracle, RandomPolicy, reset, step
from wrappers.fidelity.program import Op, Run, events
from wrappers.fidelity.report import CheckResult, FidelityReport
from wrappers.fidelity.shrink import shrink
from wrappers.fidelity.watch import Mark
from wrappers.target import target_of

# --- comparison ------------------------------------------------------------------------------------------


class Plain:
    """No equality of its own."""


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (np.float64(0.5), 0.5),
        (True, np.bool_(True)),
        (float("nan"), float("nan")),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2}, {2, 1}),
        (Colour.RED, Colour.RED),
        (datetime.date(2020, 1, 1), datetime.date(2020, 1, 1)),
    ],
)
def test_equal(left, right):
    assert Comparison().difference(capture(left), capture(right)) is None


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]: expected 2, found 3"),
        ({"a": 1}, {}, "a: expected 1, found (absent)"),
        ([1], [1, 2], "[1]: expected (absent), found 2"),
        ((1,), [1], "value: expected (1,), found [1]"),
        ({"x y": 1}, {"x y": 2}, "['x y']: expected 1, found 2"),
        (np.zeros((2, 2)), np.eye(2), "[0, 0]: expected 0.0, found 1.0"),
        (np.zeros(2, np.float32), np.zeros(2), "dtype: expected 'float32', found 'float64'"),
        (np.zeros(2), np.zeros(3), "shape: expected (2,), found (3,)"),
        ("1", 1, "value: expected '1', found 1"),
        (None, 0, "value: expected None, found 0"),
    ],
)
def test_the_first_difference_is_named(left, right, text):
    assert str(Comparison().difference(capture(left), capture(right))) == text


def test_of_long_texts_the_part_is_shown_where_they_differ():
    left, right = "a" * 200 + "left", "a" * 200 + "right"
    assert str(Comparison().difference(left, right)) == (
        "value: expected ...'aaaaaaaaaaaaaaaaaaaaleft', found ...'aaaaaaaaaaaaaaaaaaaaright'"
    )


def test_ignored_fields_are_left_out_by_pattern():
    left, right = {"info": {"t": 1, "n": {"clock": 1}}}, {"info": {"t": 2, "n": {"clock": 2}}}
    assert Comparison(ignore=("info.t", "info.*.clock")).difference(left, right) is None
    assert Comparison(ignore=("info.t",)).difference(left, right).where == "info.n.clock"


def test_objects_without_equality_are_remembered_as_not_compared():
    comparison = Comparison()
    assert comparison.difference(capture({"x": Plain()}), capture({"x": Plain()})) is None
    assert comparison.not_compared == {"x"}


def test_a_captured_answer_shares_nothing_with_the_original():
    array, items = np.zeros(2), [1, {"a": [2]}]
    kept = capture({"array": array, "items": items})
    array[0], items[1]["a"][0] = 5, 5
    assert kept["array"][0] == 0 and kept["items"] == [1, {"a": [2]}]


def test_normalize_sees_every_answer_before_it_is_compared():
    comparison = Comparison(normalize=lambda answer: {**answer, "observation": answer["observation"].lower()})
    assert comparison.answer(observation="ABC", info={}) == {"observation": "abc", "info": {}}


# --- oracle and programs ---------------------------------------------------------------------------------


class Forgetting(Basket):
    """Leaves the prices out of its state."""

    def get_state(self):
        return {"steps": self.steps}

    def set_state(self, state):
        self.steps = state["steps"]


def run(make, program) -> str | None:
    oracle = Oracle(lambda: SnapshotEnv(make()), Comparison())
    failure = Run(oracle, program, oracle.comparison).failure()
    return None if failure is None else str(failure)


TAKEN = [reset(3), step(TAKE), step(TAKE)]
WRONG = [
    Op("make"),
    *events(TAKEN),
    Op("snapshot", value="s"),
    *events([step(DROP)], checked=False),
    Op("restore", value="s"),
    *events([step(TAKE)]),
]


def test_a_program_of_a_faithful_environment_agrees_with_the_oracle():
    assert run(Basket, WRONG) is None


def test_the_first_wrong_answer_of_a_program_is_told():
    assert run(Forgetting, WRONG).startswith("step 3: observation[0]: expected 4.0, found 3.0")


def test_operations_that_became_impossible_are_passed_over():
    left = [op for op in WRONG if op.kind not in ("snapshot", "make")]
    assert run(Forgetting, left) is None
    assert run(Basket, [Op("make"), *events([step(TAKE), reset(None)])]) is None  # nothing seeded it yet


def test_an_exception_after_a_restore_is_a_wrong_answer():
    class Raising(Basket):
        def set_state(self, state):
            raise KeyError("lost")

    assert "restore at step 2 raised SnapshotError" in run(Raising, WRONG)


def test_an_exception_without_any_restore_is_raised():
    class Broken(Basket):
        def step(self, action):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(Broken, WRONG)


def test_a_program_is_printed_as_code():
    assert list(map(str, WRONG)) == [
        "a = make()",
        "a.reset(seed=3)",
        "a.step(0)",
        "a.step(0)",
        "s = a.snapshot()",
        "a.step(1)",
        "a.restore(s)",
        "a.step(0)",
    ]


def test_recorded_actions_are_admissible_and_the_same_for_a_seed():
    oracle = Oracle(Basket, Comparison())
    ends = [oracle.record([reset(0)], RandomPolicy(7), 50, float("inf")) for _ in range(2)]
    assert ends[0] is ends[1] and ends[0].over
    mask = RandomPolicy(0)
    info = {"action_mask": np.array([0, 0, 1], np.int8)}
    assert {int(mask(None, info, Basket())) for _ in range(20)} == {PAY}
    text = RandomPolicy(0)
    assert text(None, {"admissible_actions": ["only"]}, Basket()) == "only"


# --- shortening ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), max_size=40), st.sets(st.integers(0, 9), min_size=1, max_size=3))
def test_nothing_can_be_left_out_of_what_is_left(items, needed):
    def fails(candidate: list) -> bool:
        return needed <= set(candidate)

    if fails(items):
        shortest = shrink(items, fails, lambda: False)
        assert sorted(shortest) == sorted(needed)


# --- disturbances ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", disturb.DISTURBANCES)
def test_a_disturbance_is_undone(name):
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), str(np.random.get_state()), Path.cwd(), time.time, datetime.datetime
    disturb.DISTURBANCES[name]()()
    assert (random.getstate(), str(np.random.get_state()), Path.cwd(), time.time, datetime.datetime) == before


def test_every_clock_is_moved():
    readings = {
        "time": lambda: time.time(),
        "time_ns": lambda: time.time_ns() / 1e9,
        "monotonic": lambda: time.monotonic(),
        "perf_counter": lambda: time.perf_counter(),
        "now": lambda: datetime.datetime.now().timestamp(),
        "today": lambda: time.mktime(datetime.date.today().timetuple()),
        "localtime": lambda: time.mktime(time.localtime()),
        "strftime": lambda: int(time.strftime("%s")),
    }
    before = {name: read() for name, read in readings.items()}
    undo = disturb.clock(disturb.SHIFTS[0])
    moved = {name: read() - before[name] for name, read in readings.items()}
    inside = isinstance(datetime.datetime.now(), datetime.datetime)
    undo()
    assert inside
    assert all(abs(moved[name] - disturb.SHIFTS[0]) < 86400 for name in readings), moved


# --- marks -----------------------------------------------------------------------------------------------

COUNT = {"n": 0}


class Counting(Basket):
    """Counts in this module."""


def test_a_mark_tells_what_changed_and_puts_it_back(monkeypatch):
    env = SnapshotEnv(Counting())
    mark = Mark(env)
    COUNT["n"] = 5
    os.environ["ORCHARD"] = "x"
    changed = mark.changed()
    assert changed["environment variables"] == ["ORCHARD"]
    assert [name.rpartition(".")[2] for name in changed["module and class variables"]] == ["COUNT"]
    mark.rewind("environment variables")
    mark.rewind("module and class variables")
    assert COUNT == {"n": 0} and "ORCHARD" not in os.environ


# --- report and target -----------------------------------------------------------------------------------


def test_a_report_is_plain_data_with_the_promised_fields():
    check = CheckResult("isolation", False, "step 2: reward: expected 1, found 2", reproduce={"seed": 0})
    report = FidelityReport(
        "my/Env-v0", "exact", [check, CheckResult("cost", True, "")], {"bytes": 3.0}, ["x"]
    )
    data = report.to_json()
    assert list(data) == ["env", "passed", "capability", "checks", "cost", "ignored"]
    assert list(data["checks"][0])[:5] == ["name", "passed", "skipped", "detail", "reproduce"]
    assert not report.passed and report.failures == [check] and report["cost"].passed
    assert "isolation        FAILED   step 2: reward: expected 1, found 2" in str(report)
    with pytest.raises(KeyError, match="no check 'speed'"):
        report["speed"]


def test_absent_is_shown_as_such():
    assert repr(ABSENT) == "(absent)"


def test_an_instance_is_no_target():
    with pytest.raises(TypeError, match="one instance cannot do"):
        target_of(Basket(), {}, (), "auto")
