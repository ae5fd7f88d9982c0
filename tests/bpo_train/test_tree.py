"""The rollout tree by hand: paths, rows, returns and its picture."""

from __future__ import annotations

import pytest
from hypothesis import given

from bpo_train.tree import Branch, BranchPoint, Decision, RolloutTree
from random_trees import trees


def decision(context: list[int], action: list[int], text: str = "", reward: float = 0.0) -> Decision:
    return Decision(context, action, [-1.0] * len(action), [0.5] * len(action), text, reward)


@pytest.fixture
def tree() -> RolloutTree:
    """A backbone, a sibling at 1, a fork of that one at 2, one at its own first decision, an extra backbone:

    backbone  [1 2 | 10] [3 | 11] [4 | 12]
    branch 1             [  | 20] [5 | 21] [6 | 22]
    branch 2                      [  | 30]
    branch 3             [  | 40 41]
    branch 4  [    | 50]
    """
    tree = RolloutTree("task")
    tree.backbone.decisions = [
        decision([1, 2], [10], "a", 1.0),
        decision([3], [11], "b", 2.0),
        decision([4], [12], "c", 4.0),
    ]
    for parent, depth, decisions in (
        (0, 1, [decision([], [20], "d", 8.0), decision([5], [21], "e"), decision([6], [22], "f", 16.0)]),
        (1, 2, [decision([], [30], "g", 32.0)]),
        (1, 1, [decision([], [40, 41], "h", 64.0)]),
        (0, 0, [decision([], [50], "i", 128.0)]),
    ):
        index = tree.add_fork(parent, depth)
        tree.branches[index].decisions = decisions
        tree.branch_points.append(BranchPoint(parent, depth, [index]))
    return tree


def test_a_row_is_what_the_model_has_seen_and_said(tree):
    assert [tree.row(i) for i in range(5)] == [
        [1, 2, 10, 3, 11, 4, 12],
        [1, 2, 10, 3, 20, 5, 21, 6, 22],
        [1, 2, 10, 3, 20, 5, 30],
        [1, 2, 10, 3, 40, 41],
        [1, 2, 50],
    ]


def test_a_path_names_owner_and_depth(tree):
    steps = [[(owner, depth, d.text) for owner, depth, d in tree.path(i)] for i in (2, 3, 4)]
    assert steps == [
        [(0, 0, "a"), (1, 1, "d"), (2, 2, "g")],
        [(0, 0, "a"), (3, 1, "h")],
        [(4, 0, "i")],
    ]


def test_a_path_can_be_cut_before_a_depth(tree):
    assert [d.text for _, _, d in tree.path(2, 2)] == ["a", "d"]
    assert [d.text for _, _, d in tree.path(2, 1)] == ["a"]
    assert list(tree.path(2, 0)) == []


def test_returns_to_go_follow_the_path(tree):
    # branch 2 is rewarded 1 (backbone), 8 (branch 1), 32 (its own)
    assert [tree.return_to_go(2, t) for t in range(4)] == [41.0, 40.0, 32.0, 0.0]
    assert tree.return_to_go(2, 0, gamma=0.5) == 1 + 8 / 2 + 32 / 4
    assert tree.return_to_go(1, 1, gamma=0.5) == 8 + 16 / 4
    assert tree.return_to_go(4) == 128.0


def test_rewards_from_a_depth_on(tree):
    assert tree.rewards(1, 0) == [1.0, 8.0, 0.0, 16.0]
    assert tree.rewards(1, 2) == [0.0, 16.0]


def test_the_context_of_a_fork_belongs_to_its_parent(tree):
    assert [tree.context_of(i) for i in range(5)] == [[], [3], [5], [3], [1, 2]]


def test_an_empty_context_is_not_taken_for_an_inherited_one():
    # nothing entered before the second action of branch 1; a fork there starts right behind the first
    tree = RolloutTree("task")
    tree.backbone.decisions = [decision([1, 2], [10])]
    tree.branches[tree.add_fork(0, 0)].decisions = [decision([], [20]), decision([], [21])]
    tree.branches[tree.add_fork(1, 1)].decisions = [decision([], [30])]
    assert tree.row(2) == [1, 2, 20, 30]


def test_tokens_are_counted_once_and_as_rows(tree):
    assert tree.stored_tokens() == 7 + 5 + 1 + 2 + 1
    assert tree.row_tokens() == 7 + 9 + 7 + 6 + 3
    assert tree.generated_tokens() == 3 + 3 + 1 + 2 + 1


@given(trees)
def test_a_row_holds_the_tokens_along_its_path(tree):
    for index in range(tree.returns):
        steps = list(tree.path(index))
        actions = sum(len(d.action) for _, _, d in steps)
        contexts = sum(
            len(d.context) + (len(tree.context_of(owner)) if depth == tree.branches[owner].fork else 0)
            for owner, depth, d in steps
        )
        assert len(tree.row(index)) == actions + contexts
        assert [depth for _, depth, _ in steps] == list(range(len(steps)))


def test_members_of_a_branch_point_start_with_the_branch_it_lies_on():
    assert BranchPoint(0, 2, [3, 4]).members == [0, 3, 4]


@pytest.mark.parametrize(("parent", "depth"), [(0, 3), (0, -1), (1, 0), (1, 4)])
def test_a_fork_must_lie_on_its_parent(tree, parent, depth):
    with pytest.raises(ValueError, match=f"branch {parent} has no decision {depth}"):
        tree.add_fork(parent, depth)


def test_ends(tree):
    assert [branch.end for branch in tree.branches] == [3, 4, 3, 2, 1]
    assert Branch().end == 0


def test_the_picture():
    tree = RolloutTree("webshop-7")
    tree.branches[0] = Branch(ended="terminated", score=0.5)
    tree.backbone.decisions = [
        Decision([1, 2, 3], [4, 5], [-1.0] * 2, [0.25, 1.5], "search lamp"),
        Decision([6], [7], [-1.0], [0.125], "buy", reward=0.5),
    ]
    tree.branches.append(Branch(0, 0, [Decision([], [8], [-1.0], None, "buy")], "step_limit"))
    tree.branches.append(Branch(0, 1, [Decision([], [9], [-1.0], None, "buy", 1.0)], "terminated", 1.0, True))
    assert str(tree).splitlines() == [
        "tree of webshop-7: 3 returns, 9 tokens stored once (18 as rows)",
        "backbone: return 0.500, score 0.500, terminated",
        "   0 'search lamp'  H=0.25..1.50",
        "     | branch 1: return 0.000, score 0.000, step_limit",
        "     |    0 'buy'",
        "   1 'buy'  H=0.12..0.12  r=+0.500",
        "     | branch 2: return 1.000, score 1.000, won, terminated",
        "     |    1 'buy'  r=+1.000",
    ]
