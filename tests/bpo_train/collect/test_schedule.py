"""Where a backbone branches: the rules of each schedule, spacing, and which combinations are refused."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_train.collect.schedule import (
    SCHEDULES,
    DecisionView,
    PostHocSchedule,
    PredictableSchedule,
    ScheduleOptions,
    action_starts,
    check_combination,
    make_schedule,
)
from bpo_train.credit import CreditOptions, make_credit
from bpo_train.tree import Branch, Decision, RolloutTree

KEY = (0, 1)


def backbone(entropies, tokens=10, context=5):
    """One decision per entropy; each action has `tokens` tokens, all of that entropy."""
    blank = [0] * context, [0] * tokens, [0.0] * tokens
    return Branch(decisions=[Decision(*blank, [value] * tokens, "a") for value in entropies])


def schedule(name, **options):
    return make_schedule(name, ScheduleOptions(**{"spacing": 0, **options}))


def view(depth=0, entropy=1.0, spacing=None, taken=0, key=KEY):
    return DecisionView(depth, entropy, spacing, taken, key)


def grow(chosen, entropies, tokens=10):
    """Depths at which a predictable schedule branches along a backbone of `tokens` tokens an action."""
    points = []
    for depth, entropy in enumerate(entropies):
        spacing = tokens * (depth - points[-1]) if points else None
        if chosen.branch_here(DecisionView(depth, entropy, spacing, len(points), (0, depth))):
            points.append(depth)
    return points


# Post-hoc


def test_entropy_takes_the_m_highest_in_order_of_depth():
    assert schedule("entropy", branch_points=2).choose(backbone([0.1, 0.9, 0.3, 1.2]), KEY) == [1, 3]


def test_lowest_entropy_takes_the_m_lowest():
    assert schedule("lowest-entropy", branch_points=2).choose(backbone([0.1, 0.9, 0.3, 1.2]), KEY) == [0, 2]


@pytest.mark.parametrize("name", ["entropy", "lowest-entropy"])
def test_of_equal_entropies_the_earlier_is_taken(name):
    assert schedule(name, branch_points=2).choose(backbone([0.5] * 4), KEY) == [0, 1]


def test_a_decision_too_close_to_a_better_one_is_passed_over():
    # 10 tokens a decision: 2 and 3 are 10 apart, 0 and 2 are 20 apart
    chosen = schedule("entropy", branch_points=2, spacing=20).choose(backbone([0.3, 0.1, 1.0, 0.9]), KEY)
    assert chosen == [0, 2]


def test_spacing_may_leave_fewer_than_m():
    assert schedule("entropy", branch_points=4, spacing=64).choose(backbone([0.5] * 8), KEY) == [0, 7]


def test_the_default_spacing_is_the_papers_64_tokens():
    assert ScheduleOptions().spacing == 64
    assert make_schedule("entropy").choose(backbone([1.0, 0.9, 0.8], tokens=64), KEY) == [0, 1]
    assert make_schedule("entropy").choose(backbone([1.0, 0.9, 0.8], tokens=63), KEY) == [0, 2]


def test_spacing_counts_generated_tokens_or_all_of_them():
    line = backbone([0.0] * 3, tokens=10, context=5)
    assert action_starts(line, "generated") == [0, 10, 20]
    assert action_starts(line, "context") == [5, 20, 35]
    options = {"branch_points": 3, "spacing": 15}
    assert schedule("entropy", **options).choose(line, KEY) == [0, 2]
    assert schedule("entropy", spacing_unit="context", **options).choose(line, KEY) == [0, 1, 2]


def test_the_last_decision_may_branch_unless_it_is_excluded():
    line = backbone([0.1, 0.2, 0.9])
    assert schedule("entropy", branch_points=1).choose(line, KEY) == [2]
    assert schedule("entropy", branch_points=1, exclude_last=True).choose(line, KEY) == [1]
    assert schedule("entropy", branch_points=1, exclude_last=True).choose(backbone([0.5]), KEY) == []


def test_root_is_always_one_of_the_m_points():
    assert schedule("entropy", branch_points=2, root=True).choose(backbone([0.1, 0.2, 0.9]), KEY) == [0, 2]


def test_the_entropy_measure_is_an_option():
    first = Decision([], [0, 0], [0.0] * 2, [1.0, 0.0], "a")
    later = Decision([], [0, 0], [0.0] * 2, [0.9, 0.9], "b")
    line = Branch(decisions=[first, later])
    assert schedule("entropy", branch_points=1).choose(line, KEY) == [0]
    assert schedule("entropy", branch_points=1, measure="mean").choose(line, KEY) == [1]


def test_random_is_uniform_over_the_realised_length():
    chosen = [schedule("random", branch_points=1).choose(backbone([0.0] * 4), (7, i))[0] for i in range(2000)]
    # binomial(2000, 1/4): deviation 19.4; five of them
    assert all(abs(chosen.count(depth) - 500) < 97 for depth in range(4))


def test_random_depends_on_the_key_alone():
    line = backbone([0.0] * 20)
    draws = [schedule("random").choose(line, (7, i)) for i in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@given(
    st.lists(st.floats(0, 5), max_size=20),
    st.integers(0, 5),
    st.integers(0, 100),
    st.sampled_from(["entropy", "lowest-entropy", "random"]),
    st.booleans(),
)
def test_post_hoc_choices_are_ascending_at_most_m_and_far_enough_apart(entropies, most, spacing, name, root):
    options = ScheduleOptions(branch_points=most, spacing=spacing, root=root)
    chosen = make_schedule(name, options).choose(backbone(entropies), KEY)
    assert len(chosen) <= most
    assert all(10 * (b - a) >= max(spacing, 1) for a, b in pairwise(chosen))
    assert not (root and most and entropies) or chosen[0] == 0


# Predictable


def test_threshold_takes_the_first_decisions_before_it_has_seen_any():
    assert grow(schedule("entropy-threshold", branch_points=2), [0.0, 0.5, 0.9]) == [0, 1]


def test_threshold_is_a_quantile_of_earlier_backbones():
    chosen = schedule("entropy-threshold", branch_points=2, quantile=0.5)
    tree = RolloutTree("task", branches=[backbone([0.0, 1.0, 2.0, 3.0, 4.0])])
    tree.branches[tree.add_fork(0, 2)].decisions = backbone([9.0] * 9).decisions  # forks don't count
    chosen.observe([tree])
    assert chosen.threshold == 2.0
    assert grow(chosen, [1.9, 2.0, 0.0, 5.0, 5.0]) == [1, 3]


def test_threshold_looks_back_on_a_window():
    chosen = schedule("entropy-threshold")
    chosen.observe([RolloutTree("task", branches=[backbone([9.0] * 10)])])
    for _ in range(5):
        chosen.observe([RolloutTree("task", branches=[backbone([1.0] * 1000, tokens=1)])])
    assert len(chosen.entropies) == 4096
    assert max(chosen.entropies) == 1.0


def test_threshold_survives_a_checkpoint():
    chosen, restored = schedule("entropy-threshold"), schedule("entropy-threshold")
    chosen.observe([RolloutTree("task", branches=[backbone([0.25, 0.5, 2.0])])])
    restored.load_state_dict(json.loads(json.dumps(chosen.state_dict())))
    assert restored.threshold == chosen.threshold == 0.5


def test_threshold_without_entropies_says_what_to_use():
    with pytest.raises(ValueError, match="equal, hazard or root"):
        schedule("entropy-threshold").branch_here(view(entropy=None))


def test_predictable_schedules_respect_m_and_spacing():
    chosen = schedule("entropy-threshold", branch_points=2, spacing=30)
    assert grow(chosen, [1.0] * 10) == [0, 3]


def test_root_option_branches_at_the_start_whatever_the_entropy():
    chosen = schedule("entropy-threshold", branch_points=2, root=True)
    chosen.observe([RolloutTree("task", branches=[backbone([1.0])])])
    assert grow(chosen, [0.0, 0.0, 1.0, 1.0]) == [0, 2]


def test_equal_takes_the_given_decisions():
    assert grow(schedule("equal", branch_points=2, decisions=(1, 3), spacing=64), [0.0] * 5) == [1, 3]


@pytest.mark.parametrize(
    ("options", "depths"),
    [
        ({"branch_points": 2, "horizon": 10}, [3, 6]),  # T/3 and 2T/3
        ({"branch_points": 2, "horizon": 10, "root": True}, [0, 5]),  # root and T/2
        ({"branch_points": 1, "horizon": 2}, [1]),
        ({"branch_points": 0, "horizon": 2}, []),
    ],
)
def test_equal_spreads_over_a_horizon(options, depths):
    assert grow(schedule("equal", **options), [0.0] * 12) == depths


def test_equal_needs_to_know_where():
    with pytest.raises(ValueError, match="needs `decisions`"):
        schedule("equal")
    with pytest.raises(ValueError, match="a horizon of 2 decisions"):
        schedule("equal", branch_points=2, horizon=2)
    with pytest.raises(ValueError, match=r"M = 2 branch points, but decisions \[3\]"):
        schedule("equal", branch_points=2, decisions=(3,))
    with pytest.raises(ValueError, match="add 0"):
        schedule("equal", branch_points=2, decisions=(1, 3), root=True)


def test_root_branches_at_the_first_decision_only():
    assert grow(schedule("root", branch_points=1, siblings=8), [0.0] * 5) == [0]
    with pytest.raises(ValueError, match="set M = 1 and K = N"):
        schedule("root", branch_points=2)


def test_hazard_draws_each_decision_independently_of_all_but_the_key():
    chosen = schedule("hazard", rate=0.25)
    draws = [chosen.branch_here(view(depth=1, entropy=None, key=(3, i))) for i in range(2000)]
    assert draws == [chosen.branch_here(view(depth=9, entropy=2.0, key=(3, i))) for i in range(2000)]
    assert abs(sum(draws) - 500) < 97  # binomial(2000, 1/4): deviation 19.4; five of them


# All


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_the_predictable_flag_matches_the_kind(name):
    chosen = schedule(name, branch_points=1, horizon=4)
    assert isinstance(chosen, PredictableSchedule if chosen.predictable else PostHocSchedule)
    assert chosen.name == name


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_no_branch_points_means_none(name):
    chosen = schedule(name, branch_points=0, siblings=1, horizon=4, root=True)
    found = grow(chosen, [1.0] * 4) if chosen.predictable else chosen.choose(backbone([1.0] * 4), KEY)
    assert found == []


def test_an_unknown_schedule_is_answered_with_the_names():
    with pytest.raises(ValueError, match="'top': choose one of entropy, entropy-threshold, equal"):
        make_schedule("top")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"siblings": 1}, "K = 1"),
        ({"branch_points": -1}, "M = -1"),
        ({"spacing": -1}, "spacing is -1"),
        ({"spacing_unit": "words"}, "'words'"),
        ({"measure": "surprisal"}, "'surprisal'"),
        ({"quantile": 2.0}, "quantile is 2.0"),
        ({"rate": 0.0}, "rate is 0.0"),
    ],
)
def test_wrong_options_are_named(option, message):
    with pytest.raises(ValueError, match=message):
        ScheduleOptions(**option)


def test_foreign_state_is_refused():
    with pytest.raises(ValueError, match="schedule entropy keeps no state"):
        schedule("entropy").load_state_dict({"entropies": []})


# Combinations


@pytest.mark.parametrize(
    ("credit", "name", "options"),
    [
        ("bpo", "entropy", {}),
        ("bpo", "entropy", {"measure": "mean", "exclude_last": True}),
        ("bpo", "entropy-threshold", {}),
        ("bpo-corrected", "entropy-threshold", {"root": True}),
        ("bpo-corrected", "hazard", {}),
        ("rloo", "root", {"branch_points": 1, "siblings": 7}),
        ("grpo", "root", {"branch_points": 1, "siblings": 7}),
        ("reinforce", "root", {"branch_points": 0, "siblings": 1}),
    ],
)
def test_sound_combinations_pass(credit, name, options):
    check_combination(make_credit(credit), schedule(name, **options))


@pytest.mark.parametrize(
    ("credit", "name", "options", "message"),
    [
        ("bpo-corrected", "entropy", {}, "biased with the post-hoc schedule entropy"),
        ("bpo-corrected", "random", {}, "biased with the post-hoc schedule random"),
        ("bpo", "entropy-threshold", {"measure": "mean"}, "looks at the sampled action"),
        ("bpo", "equal", {"horizon": 9, "exclude_last": True}, "which decision is the last"),
        ("bpo", "hazard", {"fresh_siblings": True}, "as good a sibling"),
        ("bpo", "entropy", {"branch_points": 0}, "set M >= 1"),
        ("rloo", "root", {"branch_points": 0}, "set M >= 1"),
        ("rloo", "entropy", {}, "use the schedule root"),
        ("grpo", "equal", {"horizon": 9}, "use the schedule root"),
    ],
)
def test_unsound_combinations_raise_and_say_what_to_do(credit, name, options, message):
    with pytest.raises(ValueError, match=message):
        check_combination(make_credit(credit), schedule(name, **options))


def test_a_biased_combination_passes_when_it_is_wished_for():
    check_combination(make_credit("bpo-corrected", CreditOptions(allow_biased=True)), schedule("entropy"))
