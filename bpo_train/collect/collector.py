"""The vectorised tree collector: grows one tree a prompt, all trees and all their branches at once.

Each round asks the engine for the next action of every live branch, then steps their environments. A
predictable schedule decides at each backbone decision, before the action counts, whether to branch there; a
post-hoc one looks at the finished backbone, so a snapshot of every decision is kept until it has chosen.
Siblings start from the snapshot and from the backbone's KV cache, and run on with all else that is live.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..engine import Completion, Engine, Request, Sampling
from ..policy import PromptFormat
from ..tree import BranchPoint, Decision, RolloutTree
from .budget import forks_per_point, returns_per_tree
from .entropy import list_entropy
from .environment import InputError, Task
from .pool import Observation, Pool
from .schedule import DecisionView, PostHocSchedule, PredictableSchedule, Schedule, action_starts

_ENVIRONMENT = 0xE57  # sets the environments' seeds apart from the actions' random numbers
_SENTINEL = 0x5E27  # and the choice of restores that are checked


@dataclass(frozen=True)
class GrowthOptions:
    """How trees grow, beside their schedule.

    Attributes:
        context_limit: tokens of the longest context; an episode that would pass it ends with reason
            "context".
        success_weight: w; the last reward of an episode counts (1 - w) reward + w [won].
        fill: spend branches for which no branch point was found on extra backbones of the same prompt.
        sentinel: share of branch points at which a restored environment is given the backbone's own action,
            and must answer as it did before.
    """

    context_limit: int = 2048
    success_weight: float = 0.0
    fill: bool = True
    sentinel: float = 0.0


@dataclass(frozen=True)
class Mismatch:
    """A restore that was not faithful: the same action had another outcome than on the backbone.

    Attributes:
        task_id: of the tree; the tree is invalid.
        depth: of the decision.
        actions: all the backbone's actions up to it: reset to the task and repeat them to see for yourself.
        expected, found: (observation, reward, ended) on the backbone and after the restore.
    """

    task_id: str
    depth: int
    actions: list[str]
    expected: tuple[str, float, str]
    found: tuple[str, float, str]


@dataclass
class CollectorMeters:
    """Work of one collection."""

    generate_seconds: float = 0.0
    sentinel_checks: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)


@dataclass(slots=True)
class _Growth:
    """One tree while it grows."""

    tree: RolloutTree
    task: Task
    key: tuple[int, ...]
    snapshots: dict[int, int] = field(default_factory=dict)  # depth -> handle, kept for a post-hoc schedule
    rows: dict[int, list[int]] = field(
        default_factory=dict
    )  # depth -> tokens before the backbone's action there
    last_point: int | None = None  # depth of the latest branch point
    points: int = 0
    watched: dict[int, int] = field(default_factory=dict)  # depth -> handle, for the sentinel
    answers: dict[int, Observation] = field(default_factory=dict)  # depth -> what the backbone was answered
    valid: bool = True


@dataclass(slots=True)
class _Live:
    """One branch whose episode runs."""

    growth: _Growth
    branch: int
    slot: int
    row: list[int]
    context: list[int]
    cache: object | None = None
    actions: Sequence[str] = ()  # what the environment lists, where the schedule asks for it


class Collector:
    """Grows rollout trees.

    Args:
        engine: generates actions.
        pool: holds the environments.
        format: turns observations into tokens and tokens into actions.
        sampling: how actions are drawn.
        schedule: where to branch, and the shape (M, K) of the trees; None for backbones only.
        options: see `GrowthOptions`.
    """

    def __init__(
        self,
        engine: Engine,
        pool: Pool,
        format: PromptFormat,
        sampling: Sampling,
        schedule: Schedule | None,
        options: GrowthOptions,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._format = format
        self._sampling = sampling
        self._schedule = schedule if schedule and schedule.options.branch_points else None
        self._options = options
        self.returns = 1
        if self._schedule:
            shape = self._schedule.options
            self._fresh = shape.fresh_siblings
            self._forks = forks_per_point(shape.siblings, self._fresh)
            self.returns = returns_per_tree(shape.branch_points, shape.siblings, self._fresh)
        self.meters = CollectorMeters()

    def collect(self, tasks: Sequence[Task], key: tuple[int, ...]) -> list[RolloutTree]:
        """Grow one tree for each task, under the engine's present weights.

        `key` and a tree's position in `tasks` determine all of that tree's random numbers. A tree in which
        the sentinel found an unfaithful restore is left out, and told of in `meters.mismatches`.
        """
        growths = [
            _Growth(RolloutTree(task.id, weight_version=self._engine.version), task, (*key, number))
            for number, task in enumerate(tasks)
        ]
        seeds = [_environment_seed(growth, 0) for growth in growths]
        started = self._pool.reset(tasks, seeds)
        live = [self._start(growth, 0, *begun) for growth, begun in zip(growths, started)]
        while live:
            live = self._round(live)
        return [growth.tree for growth in growths if growth.valid]

    def _start(self, growth: _Growth, branch: int, slot: int, seen: Observation) -> _Live:
        prompt = self._format.start(seen.text, seen.info)
        room = self._options.context_limit - self._sampling.max_new_tokens
        if len(prompt) > room:
            raise InputError(
                f"the prompt of task {growth.task.id} has {len(prompt)} tokens, but context_limit less "
                f"max_new_tokens leaves room for {room}; raise context_limit or lower max_observation_tokens"
            )
        return _Live(growth, branch, slot, list(prompt), prompt, actions=_listed(seen))

    def _round(self, live: list[_Live]) -> list[_Live]:
        """One action of every live branch; return the branches that live on, new siblings among them."""
        begin = time.perf_counter()
        requests = [Request(b.row, (*b.growth.key, b.branch, _depth(b)), b.cache) for b in live]
        completions = self._engine.generate(requests, self._sampling)
        entropies = self._action_entropies(live, completions)
        self.meters.generate_seconds += time.perf_counter() - begin
        born: list[_Live] = []
        for branch, completion, entropy in zip(live, completions, entropies):
            born += self._decide(branch, completion, entropy)
        actions = [branch.growth.tree.branches[branch.branch].decisions[-1].text for branch in live]
        observations = self._pool.step([branch.slot for branch in live], actions)
        running = []
        for branch, completion, seen in zip(live, completions, observations):
            if self._advance(branch, completion, seen):
                running.append(branch)
            else:
                self._pool.release(branch.slot)
                if branch.branch == 0:
                    born += self._finish_backbone(branch.growth, completion)
        return running + born

    def _action_entropies(self, live: list[_Live], completions: Sequence[Completion]) -> list[float | None]:
        """Entropy over the listed actions for each backbone, where the schedule measures it; else None."""
        if self._schedule is None or self._schedule.options.measure != "actions":
            return [None] * len(live)
        asked = [k for k, branch in enumerate(live) if branch.branch == 0]
        for k in asked:
            if not live[k].actions:
                raise InputError(
                    f"measure 'actions' needs admissible_actions in the environment's info; task "
                    f"{live[k].growth.task.id} lists none"
                )
        requests = [Request(live[k].row, (), completions[k].cache) for k in asked]
        candidates = [[self._format.action_tokens(action) for action in live[k].actions] for k in asked]
        scores = self._engine.score(requests, candidates, self._sampling.temperature)
        found = dict(zip(asked, map(list_entropy, scores)))
        return [found.get(k) for k in range(len(live))]

    def _decide(self, live: _Live, completion: Completion, action_entropy: float | None) -> list[_Live]:
        """Write the action into the tree; on a backbone, branch here or keep what that needs later."""
        growth, tree = live.growth, live.growth.tree
        node = tree.branches[live.branch]
        inherited = not node.decisions and node.parent is not None
        node.decisions.append(
            Decision(
                context=[] if inherited else live.context,
                action=completion.tokens,
                logprobs=completion.logprobs,
                entropies=completion.entropies,
                text=self._format.action_text(completion.tokens),
                cut=not completion.stopped,
                action_entropy=action_entropy,
            )
        )
        if live.branch != 0 or self._schedule is None:
            return []
        depth = node.end - 1
        if isinstance(self._schedule, PostHocSchedule):
            growth.snapshots[depth] = self._pool.snapshot(live.slot)
            growth.rows[depth] = list(live.row)
            return []
        assert isinstance(self._schedule, PredictableSchedule)
        starts = action_starts(node, self._schedule.options.spacing_unit)
        view = DecisionView(
            depth=depth,
            entropy=_known_entropy(completion) if action_entropy is None else action_entropy,
            spacing=None if growth.last_point is None else starts[depth] - starts[growth.last_point],
            taken=growth.points,
            key=(*growth.key, 0, depth),
        )
        if not self._schedule.branch_here(view):
            return []
        growth.last_point = depth
        handle = self._pool.snapshot(live.slot)
        siblings = self._fork(growth, depth, handle, list(live.row), completion.cache)
        if depth not in growth.watched:
            self._pool.drop(handle)
        return siblings

    def _fork(
        self, growth: _Growth, depth: int, handle: int, row: list[int], cache: object | None
    ) -> list[_Live]:
        """Open the siblings of the backbone's action at `depth`."""
        growth.points += 1
        if self._options.sentinel and _chance((_SENTINEL, *growth.key, depth)) < self._options.sentinel:
            growth.watched[depth] = handle
        indices = [growth.tree.add_fork(0, depth) for _ in range(self._forks)]
        growth.tree.branch_points.append(BranchPoint(0, depth, indices, fresh=self._fresh))
        seeds = [_environment_seed(growth, index) for index in indices]
        slots = self._pool.restore([handle] * self._forks, seeds)
        return [_Live(growth, index, slot, list(row), [], cache) for index, (slot, _) in zip(indices, slots)]

    def _advance(self, live: _Live, completion: Completion, seen: Observation) -> bool:
        """Take in what the environment answered; False when the episode is over."""
        node = live.growth.tree.branches[live.branch]
        decision = node.decisions[-1]
        node.score, node.won = float(seen.info.get("score", 0.0)), bool(seen.info.get("won", False))
        live.row = live.row + decision.action
        live.cache = completion.cache
        if not seen.ended:
            live.context = self._format.follow(seen.text, seen.info, decision.cut)
            live.actions = _listed(seen)
            live.row += live.context
            if len(live.row) + self._sampling.max_new_tokens > self._options.context_limit:
                node.ended = "context"
        decision.reward = seen.reward
        node.ended = node.ended or seen.ended
        if live.branch == 0 and self._options.sentinel:
            live.growth.answers[node.end - 1] = seen
        if node.ended:
            weight = self._options.success_weight
            decision.reward = (1 - weight) * seen.reward + weight * node.won
        return not node.ended

    def _finish_backbone(self, growth: _Growth, completion: Completion) -> list[_Live]:
        """The backbone is over: let a post-hoc schedule choose, then spend what is left of the budget."""
        born: list[_Live] = []
        if isinstance(self._schedule, PostHocSchedule):
            for depth in self._schedule.choose(growth.tree.backbone, growth.key):
                born += self._fork(
                    growth, depth, growth.snapshots[depth], growth.rows[depth], completion.cache
                )
        self._stand_sentinel(growth)
        for handle in {*growth.snapshots.values(), *growth.watched.values()}:
            self._pool.drop(handle)
        growth.snapshots.clear()
        growth.watched.clear()
        left = self.returns - growth.tree.returns
        if self._schedule is None or not self._options.fill or left <= 0:
            return born
        indices = [growth.tree.add_fork(0, 0) for _ in range(left)]
        growth.tree.branch_points.append(BranchPoint(0, 0, indices, scheduled=False, fresh=self._fresh))
        prompt = growth.tree.backbone.decisions[0].context
        seeds = [_environment_seed(growth, index) for index in indices]
        for index, (slot, _) in zip(indices, self._pool.reset([growth.task] * left, seeds)):
            born.append(_Live(growth, index, slot, list(prompt), [], completion.cache))
        return born

    def _stand_sentinel(self, growth: _Growth) -> None:
        """Repeat the backbone's own action from watched snapshots; a difference makes the tree invalid."""
        actions = [decision.text for decision in growth.tree.backbone.decisions]
        for depth, handle in growth.watched.items():
            ((slot, _),) = self._pool.restore([handle], [None])
            (seen,) = self._pool.step([slot], [actions[depth]])
            self._pool.release(slot)
            self.meters.sentinel_checks += 1
            before = growth.answers[depth]
            expected, found = ((o.text, o.reward, o.ended) for o in (before, seen))
            if found != expected:
                growth.valid = False
                self.meters.mismatches.append(
                    Mismatch(growth.task.id, depth, actions[: depth + 1], expected, found)
                )


def _chance(key: tuple[int, ...]) -> float:
    return float(np.random.default_rng(np.random.SeedSequence(key)).random())


def _environment_seed(growth: _Growth, branch: int) -> int:
    """Seed of an environment's own randomness on one branch, from its fork on."""
    return int(np.random.SeedSequence((_ENVIRONMENT, *growth.key, branch)).generate_state(1)[0])


def _listed(seen: Observation) -> Sequence[str]:
    return tuple(seen.info.get("admissible_actions", ()))


def _known_entropy(completion: Completion) -> float | None:
    """H_t at the first token: known before any of the action is drawn."""
    return completion.entropies[0] if completion.entropies else None


def _depth(live: _Live) -> int:
    return live.growth.tree.branches[live.branch].end
