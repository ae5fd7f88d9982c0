"""Every rollout tree that a schedule can grow on a `TinyMDP`, with its exact probability.

The trees are the product's, grown by the product's schedules and credited by the product's credits; only the
collector is replaced, by one that takes every outcome instead of a random one. Siblings are i.i.d. and
credits treat them alike, so a group is enumerated as a multiset with its multinomial probability.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

from tiny_mdp import Gradient, State, TinyMDP

from bpo_train.collect.budget import forks_per_point, returns_per_tree
from bpo_train.collect.schedule import (
    DecisionView,
    PredictableSchedule,
    Schedule,
    ScheduleOptions,
    action_starts,
    make_schedule,
)
from bpo_train.credit import Credit, TreeCredit
from bpo_train.tree import Branch, BranchPoint, Decision, RolloutTree

Steps = list[tuple[State, str]]
Outcome = tuple[RolloutTree, Fraction]


def trees(mdp: TinyMDP, schedule: Schedule, fill: bool = False, task_id: str = "task") -> Iterator[Outcome]:
    """All trees and their probabilities.

    Args:
        mdp: process and policy.
        schedule: where the backbone branches, and M and K.
        fill: spend the budget of branch points that were not found on extra backbones.
        task_id: of the trees.
    """
    options = schedule.options
    forks = forks_per_point(options.siblings, options.fresh_siblings)
    budget = returns_per_tree(options.branch_points, options.siblings, options.fresh_siblings)
    for backbone, probability in mdp.episodes():
        branch = decisions(mdp, backbone)
        points = branch_depths(mdp, schedule, branch, backbone)
        groups = [(depth, list(multisets(mdp.episodes(backbone[depth][0]), forks))) for depth in points]
        left = budget - 1 - forks * len(points) if fill else 0
        if left:
            groups.append((None, list(multisets(mdp.episodes(), left))))
        for choice in product(*(outcomes for _, outcomes in groups)):
            tree = RolloutTree(task_id, branches=[Branch(decisions=branch)])
            total = probability
            for (depth, _), (siblings, p) in zip(groups, choice):
                add_siblings(tree, mdp, depth, siblings, options.fresh_siblings)
                total *= p
            yield tree, total


def at_threshold(nats: float, points: int, siblings: int, root: bool = False) -> Schedule:
    """`entropy-threshold` whose earlier batches set the threshold to `nats`."""
    options = ScheduleOptions(points, siblings, spacing=1, root=root)
    schedule = make_schedule("entropy-threshold", options)
    schedule.load_state_dict({"entropies": [nats]})
    return schedule


def branch_depths(mdp: TinyMDP, schedule: Schedule, branch: list[Decision], backbone: Steps) -> list[int]:
    """Ask the schedule, as the collector does: before each action, or after the last one."""
    line = Branch(decisions=branch)
    if not isinstance(schedule, PredictableSchedule):
        return schedule.choose(line, (0,))
    starts = action_starts(line, schedule.options.spacing_unit)
    points: list[int] = []
    for depth, decision in enumerate(branch):
        spacing = starts[depth] - starts[points[-1]] if points else None
        if schedule.branch_here(DecisionView(depth, decision.entropies[0], spacing, len(points), (0, depth))):
            points.append(depth)
    return points


def decisions(mdp: TinyMDP, steps: Steps) -> list[Decision]:
    return [decision(mdp, state, action) for state, action in steps]


def decision(mdp: TinyMDP, state: State, action: str) -> Decision:
    """One step as the engine would record it; made once, since nothing writes to it."""
    key = ("decision", state, action)
    if key not in mdp.cache:
        tokens = [ord(token) for token in action]
        logprobs = [math.log(mdp.policy[state, action[:i]][token]) for i, token in enumerate(action)]
        mdp.cache[key] = Decision(
            [], tokens, logprobs, mdp.entropies(state, action), action, mdp.reward(state, action)
        )
    return mdp.cache[key]


def multisets(outcomes: list[tuple[Steps, Fraction]], size: int) -> Iterator[tuple[list[Steps], Fraction]]:
    """Unordered draws of `size` i.i.d. outcomes with their probabilities."""
    for indices in combinations_with_replacement(range(len(outcomes)), size):
        ways = math.factorial(size)
        probability = Fraction(1)
        for index, count in Counter(indices).items():
            ways //= math.factorial(count)
            probability *= outcomes[index][1] ** count
        yield [outcomes[index][0] for index in indices], ways * probability


def add_siblings(
    tree: RolloutTree, mdp: TinyMDP, depth: int | None, siblings: list[Steps], fresh: bool
) -> None:
    """Fork the backbone at `depth`; None: extra backbones."""
    indices = []
    for steps in siblings:
        indices.append(tree.add_fork(0, depth or 0))
        tree.branches[indices[-1]].decisions = decisions(mdp, steps)
    tree.branch_points.append(BranchPoint(0, depth or 0, indices, scheduled=depth is not None, fresh=fresh))


def steps_of(tree: RolloutTree) -> Iterator[tuple[int, int, State, str]]:
    """(branch, own decision, state, action) of each decision of a tree that forks off its backbone only."""
    line = tuple(d.text for d in tree.backbone.decisions)
    for index, branch in enumerate(tree.branches):
        state = line[: branch.fork]
        for own, taken in enumerate(branch.decisions):
            yield index, own, state, taken.text
            state = (*state, taken.text)


def tree_credit(credit: Credit, baseline: Fraction | None = None) -> Callable[[RolloutTree], TreeCredit]:
    """The credit of one tree alone in its batch; `baseline`: the task's running mean from earlier batches."""

    def call(tree: RolloutTree) -> TreeCredit:
        if baseline is not None:
            credit.load_state_dict({"running": {tree.task_id: [1, baseline]}})
        elif credit.state_dict():
            credit.load_state_dict({"running": {}})
        return credit([tree])[0]

    return call


def expected_gradient(
    mdp: TinyMDP, outcomes: Iterable[Outcome], credit: Callable[[RolloutTree], TreeCredit]
) -> Gradient:
    """E[ sum over (s, a) of weight x advantage x grad log pi(a|s) ]: the gradient of Eq 6 at rho = 1."""
    total: dict[tuple[State, str], Fraction] = {}
    for tree, probability in outcomes:
        found = credit(tree)
        for branch, own, state, action in steps_of(tree):
            amount = probability * exact(found.weights[branch][own]) * exact(found.advantages[branch][own])
            total[state, action] = total.get((state, action), Fraction(0)) + amount
    return mdp.gradient(total)


def tree_gradient(mdp: TinyMDP, tree: RolloutTree, found: TreeCredit) -> Gradient:
    """What one tree contributes: sum over (s, a) of weight x advantage x grad log pi(a|s)."""
    total: dict[tuple[State, str], Fraction] = {}
    for branch, own, state, action in steps_of(tree):
        amount = exact(found.weights[branch][own]) * exact(found.advantages[branch][own])
        total[state, action] = total.get((state, action), Fraction(0)) + amount
    return mdp.gradient(total)


def second_moment(
    mdp: TinyMDP,
    outcomes: Iterable[Outcome],
    credit: Callable[[RolloutTree], TreeCredit],
    part: Callable[[Gradient], Gradient] = lambda gradient: gradient,
) -> Fraction:
    """E[|g|^2] of one tree's gradient, or of a part; less |E g|^2 it is the trace of its covariance."""
    return sum(
        (p * squared(part(tree_gradient(mdp, tree, credit(tree)))) for tree, p in outcomes), Fraction(0)
    )


def squared(gradient: Gradient) -> Fraction:
    """|g|^2."""
    return sum((value * value for value in gradient.values()), Fraction(0))


def exact(value: float) -> Fraction:
    """A credit's number as a fraction: weights are floats 1/n with small n, the rest are fractions."""
    if isinstance(value, Fraction | int):
        return Fraction(value)
    found = Fraction(value).limit_denominator(10_000)
    if abs(found - Fraction(value)) > Fraction(1, 10**12):
        raise ValueError(f"{value!r} is no fraction with a small denominator: arithmetic was not exact")
    return found
