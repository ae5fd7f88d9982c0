"""Decision processes as plain data: what is accepted, what is refused, unrolling."""

from __future__ import annotations

import json
from fractions import Fraction as F

import pytest

from bpo_envs.toy.mdp import MDP, Outcome, fraction, from_data, unroll

CHAIN = {
    "start": "s",
    "transitions": {
        "s": {"go": [["1/3", "t", 0], ["2/3", "end", 0.1]], "stay": [[1, "end", "1/2"]]},
        "t": {"go": [[1, "end", 1]]},
    },
}
LOOP = {"start": "s", "transitions": {"s": {"go": [["1/2", "s", 0], ["1/2", "end", 1]]}}}


def change(**transitions):
    return {**CHAIN, "transitions": {**CHAIN["transitions"], **transitions}}


def test_numbers_are_read_exactly():
    mdp = from_data(CHAIN)
    assert mdp.outcomes("s", "go") == (Outcome(F(1, 3), "t"), Outcome(F(2, 3), "end", F(1, 10)))
    assert [fraction(x) for x in (2, "1/3", 0.1, "0.25", F(1, 7))] == [2, F(1, 3), F(1, 10), F(1, 4), F(1, 7)]


def test_written_and_read_it_is_the_same_process():
    mdp = from_data(CHAIN)
    assert from_data(json.loads(json.dumps(mdp.to_data()))) == mdp


def test_states_come_before_those_that_follow_them():
    assert from_data(CHAIN).order == ("s", "t", "end")
    assert from_data(CHAIN).actions("s") == ("go", "stay")
    assert from_data(CHAIN).actions("end") == ()


def test_a_process_with_cycles_is_unrolled():
    mdp = from_data(LOOP, horizon=2)
    assert mdp.order == ("0:s", "1:s", "2:end", "2:s", "1:end") or set(mdp.order) == {
        "0:s",
        "1:s",
        "1:end",
        "2:s",
        "2:end",
    }
    assert mdp.outcomes("1:s", "go") == (Outcome(F(1, 2), "2:s"), Outcome(F(1, 2), "2:end", F(1)))
    assert mdp.actions("2:s") == ()


def test_a_cycle_is_named():
    data = change(t={"go": [[1, "s", 0]]})
    with pytest.raises(
        ValueError, match=r"come back to a state \((s -> t -> s|t -> s -> t)\); give a horizon"
    ):
        from_data(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "a dict of 'start' and 'transitions'"),
        ({"start": "s"}, "a dict of 'start' and 'transitions'"),
        ({**CHAIN, "start": "nowhere"}, "the start 'nowhere' has no actions"),
        ({**CHAIN, "start": 3}, "'start' is a state's name"),
        (change(t={}), "state 't' has an empty list of actions"),
        (change(t=["go"]), "the actions of state 't' are a dict"),
        (change(t={"go now": [[1, "end", 0]]}), "'go now' in state 't': expected a word"),
        (change(t={"go": [[1, "end"]]}), "a list of .probability, next state, reward."),
        (change(t={"go": 1}), "a list of .probability, next state, reward."),
        (change(t={"go": [["1/2", "end", 0]]}), "'go' in state 't' are .'1/2'.; expected .* sum to 1"),
        (change(t={"go": [[0, "s2", 0], [1, "end", 0]]}), "expected positive ones"),
        (change(t={"go": [[]]}), "a list of .probability"),
        (change(t={"go": [[1, "end", float("nan")]]}), "'go' in state 't': nan is no number"),
        (change(t={"go": [[1, "end", "1/0"]]}), "'1/0' is no number"),
        (change(t={"go": [[1, 7, 0]]}), "a state's name is a text of one line; given: 7"),
        (change(**{"a\nb": {"go": [[1, "end", 0]]}}), "a text of one line"),
    ],
)
def test_what_is_no_process_is_named(data, message):
    with pytest.raises(ValueError, match=message):
        from_data(data)


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True])
def test_a_horizon_is_a_number_of_steps(horizon):
    with pytest.raises(ValueError, match="expected a number of steps"):
        unroll("s", {}, horizon)


def test_a_process_can_be_written_in_code():
    mdp = MDP("s", {"s": {"a": (Outcome(F(1), "end", F(1, 2)),)}})
    assert mdp.to_data() == {"start": "s", "transitions": {"s": {"a": [["1", "end", "1/2"]]}}}
