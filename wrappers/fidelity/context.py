"""What every check is given: the environment, the recorded episodes, a time budget, and ways to search.

Episodes are recorded once, by playing; checks reuse their actions. A check tries as many cases as its budget
allows, and says how many that were; the first failing case is shortened before it is reported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import SnapshotError
from ..snapshot_env import SnapshotEnv
from ..target import Target
from .compare import DEFAULT_IGNORE, Comparison
from .oracle import Event, Node, Oracle, Policy, RandomPolicy, now, reset
from .program import Failure, Op, Program, Run
from .running import running
from .shrink import shrink
from .suspects import suspects

MAX_STEPS = 1000  # of a recorded episode; the time limit of recording usually comes first
LEAST_STEPS, PATIENCE = 12, 5.0  # steps that an episode gets even if time is up, for so many seconds


@dataclass
class Settings:
    """How to look.

    episodes: recorded episodes (seeds `seed`, `seed` + 1, ...).
    budget: seconds of work for each check.
    least_cases: cases that a check tries even if its time is up, unless they take long.
    hash_seeds: values of PYTHONHASHSEED that are tried, each in a new process.
    time_limit: seconds after which a check counts as hung.
    slowness: the limit grows by so many times the seconds that preparing took.
    memory_limit: bytes that a check may allocate.
    nondeterministic: None: as the environment's spec (or an attribute of that name) declares.
    """

    seed: int = 0
    episodes: int = 8
    budget: float = 2.5
    least_cases: int = 10
    hash_seeds: tuple[int, ...] = (1, 2)
    time_limit: float = 60.0
    slowness: float = 0.0
    memory_limit: int = 4 << 30
    policy: Policy | None = None
    options: Mapping[str, Any] | None = None
    normalize: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ignore: tuple[str, ...] = DEFAULT_IGNORE
    nondeterministic: bool | None = None
    branch_points: int = 4
    siblings: int = 4

    def comparison(self) -> Comparison:
        return Comparison(self.ignore, self.normalize)


@dataclass
class Finding:
    """What a check says; see report.CheckResult. `data` goes into the report's `cost`."""

    detail: str
    passed: bool = True
    skipped: bool = False
    reproduce: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Episode:
    """A recorded episode: a first part begun by a seeded reset, and perhaps more after an unseeded one.

    end: the last history of the first part. more: the last of the second part, or None.
    """

    seed: int
    end: Node
    more: Node | None = None

    @property
    def events(self) -> list[Event]:
        return self.end.events()

    @property
    def all_events(self) -> list[Event]:
        return (self.more or self.end).events()

    @property
    def length(self) -> int:
        """Steps of the first part."""
        return self.end.depth - 1


class Context:
    """A check's view of the environment under examination."""

    def __init__(self, target: Target, settings: Settings) -> None:
        self.target, self.settings = target, settings
        self.comparison = settings.comparison()
        self.oracle = Oracle(target.make, self.comparison)
        self.chance = random.Random(settings.seed)
        self.episodes: list[Episode] = []
        self.capability = "none"
        self.refusal: str | None = None  # why nothing can be captured
        self.unwritten: str | None = None  # why snapshots cannot be written as bytes
        self.nondeterministic = False
        self.unseeded_repeats = True
        self.until = float("inf")
        self.baseline = running()  # before anything was made
        self.private: Path | None = None  # a temporary folder of this process alone

    def prepare(self) -> None:
        """Asks the environment what it is, and records episodes. Raises what the environment raises."""
        env = self.target.make()
        try:
            self.capability = env.capability
            env.reset(seed=self.settings.seed, options=_given(self.settings.options))
            self.refusal, self.unwritten = _refusals(env)
            self.nondeterministic = self._declared_nondeterministic(env)
        finally:
            env.close()
        self._record()

    def start(self, weight: float = 1.0) -> None:
        """Starts the clock of a check."""
        self.until = now() + weight * self.settings.budget

    @property
    def time_is_up(self) -> bool:
        return now() > self.until

    def enough(self, cases: int, share: float = 1.0) -> bool:
        """Whether to stop after `cases`: time is up, and this share of the least is done, or takes long."""
        done = cases >= share * self.settings.least_cases
        return self.time_is_up and (done or now() > self.until + 1.0 + 3 * self.settings.budget)

    def reset_event(self, seed: int | None) -> Event:
        return reset(seed, _given(self.settings.options))

    def policy(self, number: int) -> Policy:
        """The given policy, else a random one: every second walks straight for a while."""
        if self.settings.policy is not None:
            return self.settings.policy
        return RandomPolicy(self.settings.seed + number, persistence=(0.0, 0.8, 0.4)[number % 3])

    # --- recording ---------------------------------------------------------------------------------------

    def _record(self) -> None:
        begin, limit = now(), 0.4 * self.settings.budget
        for number in range(self.settings.episodes):
            share = begin + limit * (number + 1) / self.settings.episodes
            seed = self.settings.seed + number
            end = self.oracle.record(
                [self.reset_event(seed)], self.policy(number), MAX_STEPS, share, LEAST_STEPS
            )
            self.episodes.append(Episode(seed, end))
            if now() - begin > (limit if number else PATIENCE):
                break
        if not self.nondeterministic:
            self._continue(begin + 1.5 * limit)

    def _continue(self, until: float) -> None:
        """Second parts, where an unseeded reset goes on from the generator instead of drawing new entropy."""
        for number, episode in enumerate(self.episodes):
            if not episode.end.over:
                continue
            events = [*episode.events, self.reset_event(None)]
            oracle = Oracle(self.target.make, self.comparison)
            more = oracle.record(events, self.policy(number + 1), 30, until)
            again = self.oracle.root
            for event in more.events():
                again = again.child(event)
            self.oracle.fill([again])
            same = [
                not self.comparison.difference(a.answer, b.answer) for a, b in zip(more.path(), again.path())
            ]
            if all(same[: len(events) - 1]) and not all(same):
                self.unseeded_repeats = False
                return
            episode.more = again
            if now() > until:
                return

    def _declared_nondeterministic(self, env: SnapshotEnv) -> bool:
        if self.settings.nondeterministic is not None:
            return self.settings.nondeterministic
        spec = env.unwrapped.spec
        declared = getattr(env.unwrapped, "nondeterministic", False)
        return bool(spec is not None and spec.nondeterministic) or declared is True

    # --- searching ---------------------------------------------------------------------------------------

    def run(self, program: Program, comparison: Comparison | None = None) -> Failure | None:
        return Run(self.oracle, program, comparison or self.comparison).failure()

    def search(
        self, programs: Iterable[Program], what: str, run: Callable[[Program], Failure | None] | None = None
    ) -> Finding:
        """Runs programs while there is time; the first that fails is shortened and reported."""
        run = run or self.run
        number = 0
        for program in programs:
            number += 1
            failure = run(program)
            if failure is not None:
                return self.failed(failure, run)
            if self.enough(number):
                break
        return Finding(f"{number} {what}{'' if number == 1 else 's'}")

    def failed(self, failure: Failure, run: Callable[[Program], Failure | None]) -> Finding:
        """The finding of a failure, with the shortest program that shows it."""
        until = now() + max(0.5, self.settings.budget)
        best = failure

        def fails(program: list[Op]) -> bool:
            nonlocal best
            try:
                found = run(program)
            except Exception:  # the environment itself cannot live through this shorter history
                return False
            if found is not None:
                best = found
            return found is not None

        shrink(failure.program[: failure.at + 1], fails, lambda: now() > until)
        detail = str(best)
        named = suspects(self, best)
        if named:
            detail += f". Attributes that differ there: {named}"
        return Finding(detail, passed=False, reproduce=best.reproduce())


def _given(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if options is None else dict(options)


def _refusals(env: SnapshotEnv) -> tuple[str | None, str | None]:
    """Why no snapshot can be taken of `env`, which has been reset, and why none can be written; None: it can.

    What cannot be written, though it was taken, is the observation or info of the moment.
    """
    try:
        snapshot = env.snapshot()
    except Exception as error:  # the environment's get_state may raise anything
        return f"{type(error).__name__}: {error}", None
    with snapshot:
        try:
            snapshot.to_bytes()
        except SnapshotError as error:
            return None, str(error)
    return None, None
