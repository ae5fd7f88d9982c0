"""The families of processes: their shape, and that a seed means the same process everywhere."""

from __future__ import annotations

import importlib
import sys
from fractions import Fraction as F

import numpy as np
import pytest

from bpo_envs.tasks import task_digest
from bpo_envs.toy.exact import episodes, evaluate, optimal, uniform
from bpo_envs.toy.families import FAMILIES, action_names, make_family


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("tokens", [1, 2])
def test_every_episode_has_as_many_decisions_as_the_horizon(name, tokens):
    mdp = make_family(name, 3, tokens=tokens)
    lengths = {len(steps) for steps, _ in episodes(mdp, uniform(mdp))}
    assert lengths == {3}


def test_actions_of_one_and_of_two_tokens():
    assert action_names(3, 1) == ["a", "b", "c"]
    assert action_names(3, 2) == ["b", "ac", "ad"]
    mdp = make_family("layered", tokens=2)
    assert set(mdp.actions(mdp.start)) == {"b", "ac", "ad"}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_names_of_actions_change_nothing_else(name):
    one, two = (make_family(name, 3, seed=5, tokens=tokens) for tokens in (1, 2))
    if name != "tree":  # a tree has two actions of one token, three of two
        assert evaluate(one, uniform(one)).v == evaluate(two, uniform(two)).v


def test_a_tree_pays_once_for_the_whole_history():
    mdp = make_family("tree", 3, seed=1)
    paid = {steps[-1][0]: reward for steps, _ in episodes(mdp, uniform(mdp)) for *_, reward in steps[:-1]}
    assert set(paid.values()) == {F(0)}
    assert all(0 <= reward <= 1 for steps, _ in episodes(mdp, uniform(mdp)) for *_, reward in steps)


def test_the_first_action_of_early_decides_in_which_half_the_episode_stays():
    mdp = make_family("early", 6, seed=1)
    for steps, _ in episodes(mdp, uniform(mdp)):
        halves = {int(state.split(".")[1]) >= 6 for state, *_ in steps[1:]}
        assert halves == {steps[0][1] == "a"}


@pytest.mark.parametrize(("module", "name"), [("layered_mdp", "layered"), ("early_decision", "early")])
def test_tables_are_those_that_the_figures_of_the_theory_speak_of(shared, monkeypatch, module, name):
    monkeypatch.syspath_prepend(str(shared / "theory"))
    monkeypatch.setattr(sys, "argv", ["x"])
    make = importlib.import_module(module).make
    for seed in (1, 4):
        after, pays = make(seed, T=10)
        mdp = make_family(name, 10, seed)
        for t, s, a in np.ndindex(after.shape):
            (outcome,) = mdp.outcomes(f"{t}.{s}", "abc"[a])
            assert outcome.state == f"{t + 1}.{after[t, s, a]}"
            assert outcome.reward == (pays[after[t, s, a]] if t == 9 else 0)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("tree", "912da8289cc5be128cbfe0314f01c9a4d7cebbfa0279cc136bf1d27e61fdd3d8"),
        ("layered", "d96c9718ccf324f4506c67bd592016c3747025e492c9c983e2db8065f6bf4634"),
        ("early", "fc044fdec59d81e77a878c6536bdc681a8c66bda94644312656ca855a148f857"),
    ],
)
def test_a_seed_means_the_same_process_everywhere(name, digest):
    # a change of a digest changes the meaning of every recorded result on that process
    assert task_digest(make_family(name, seed=1).to_data()) == digest


@pytest.mark.parametrize("name", FAMILIES)
def test_there_is_something_to_learn(name):
    mdp = make_family(name, seed=1)
    assert optimal(mdp)[1].v[mdp.start] > evaluate(mdp, uniform(mdp)).v[mdp.start]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("maze",), "no family of processes is called 'maze'; expected one of tree, layered, early"),
        (("tree", 9), "horizon is 9; for 'tree' expected an integer from 1 to 8"),
        (("layered", 0), "horizon is 0"),
        (("layered", 10, -1), "seed is -1"),
        (("layered", 10, 0, 3), "tokens is 3; for 'layered' expected an integer from 1 to 2"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_family(*arguments)
