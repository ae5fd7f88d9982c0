"""The checks that go back in one environment: round trip, dirty round trip, repeatability, transparency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...snapshot import Snapshot
from ..compare import DEFAULT_IGNORE, Comparison, Difference
from ..context import Context, Episode, Finding
from ..oracle import Event, perform, reset
from ..program import Op, Program, events, printable

_ALBUM = 32  # snapshots alive at once


def moments(context: Context, number: int) -> list[int]:
    """Where to take snapshots in `number` events: early, late, around the last one, and elsewhere."""
    first = [number // 2, number - 1, 1, number, 2, number - 2]
    extra = [context.chance.randint(1, number) for _ in range(10)]
    return list(dict.fromkeys(at for at in [*first, *extra] if 1 <= at <= number))


def occasions(context: Context) -> Iterator[tuple[Episode, int]]:
    """Pairs of an episode and a moment, all episodes in turn, the telling moments first."""
    queues = [(episode, moments(context, len(episode.all_events))) for episode in context.episodes]
    for rank in range(max(len(queue) for _, queue in queues)):
        for episode, queue in queues:
            if rank < len(queue):
                yield episode, queue[rank]


# --- round trip ------------------------------------------------------------------------------------------


def round_trip(context: Context) -> Finding:
    """Snapshot, restore here and in another instance: the same continuation as if nothing had happened."""
    programs = (_there_and_back(context, episode, at) for episode, at in occasions(context))
    return context.search(programs, "round trip")


def _there_and_back(context: Context, episode: Episode, at: int) -> Program:
    played = episode.all_events
    return [
        Op("make"),
        *events(played[:at]),
        Op("snapshot", value="s"),
        Op("restore", value="s"),
        *events(played[at:]),
        Op("make", "b"),
        Op("restore", "b", "s"),
        *events(played[at:], "b"),
    ]


# --- dirty round trip ------------------------------------------------------------------------------------


def dirty_round_trip(context: Context) -> Finding:
    """Snapshot, wander off, restore: the same continuation."""
    return context.search(_excursions(context), "excursion")


def _excursions(context: Context) -> Iterator[Program]:
    for number, (episode, at) in enumerate(occasions(context)):
        played = episode.all_events
        wander = wanderings(context, episode, at, number)
        yield [
            Op("make"),
            *events(played[:at]),
            Op("snapshot", value="s"),
            *events(wander, checked=False),
            Op("restore", value="s"),
            *events(played[at:]),
        ]
        if number % 3 == 2 and at > 3:
            yield _several(context, played, at)
        if number % 4 == 1:
            yield _album(context, played)


def wanderings(context: Context, episode: Episode, at: int, number: int) -> list[Event]:
    """Events that lead elsewhere from moment `at`: a few steps, the end, another episode, or all of them."""
    played = episode.all_events
    astray = branch(context, played[:at], 8 if number % 4 == 0 else 60, number)
    others = [other for other in context.episodes if other is not episode] or [episode]
    other = others[number % len(others)].events
    if episode is others[0]:
        other = [reset(episode.seed + 1, played[0].value[1])]
    return [astray, [*astray, *other], list(other), [*astray, *other[: 1 + len(other) // 2]]][number % 4]


def branch(context: Context, played: Sequence[Event], steps: int, number: int) -> list[Event]:
    """Steps of a random continuation from where `played` leads; none where an episode is over."""
    node = context.oracle.record(played, context.policy(101 + number), steps, context.until + 1.0)
    return node.events()[len(played) :]


def _several(context: Context, played: Sequence[Event], at: int) -> Program:
    """Three snapshots of one episode, restored in another order than they were taken, nearest last."""
    early, middle = at // 3, 2 * at // 3
    return [
        Op("make"),
        *events(played[: early + 1]),
        Op("snapshot", value="s"),
        *events(played[early + 1 : middle + 1]),
        Op("snapshot", value="t"),
        *events(played[middle + 1 : at]),
        Op("snapshot", value="u"),
        *events(played[at:]),
        *(Op("restore", value="t"), *events(played[middle + 1 :])),
        *(Op("restore", value="s"), *events(played[early + 1 :])),
        *(Op("restore", value="u"), *events(played[at:])),
    ]


def _album(context: Context, played: Sequence[Event]) -> Program:
    """A snapshot at each step; then a visit to each, in any order, with a few steps from there."""
    pages = min(len(played), _ALBUM)
    program = [Op("make")]
    for number, event in enumerate(played[:pages]):
        program += [*events([event]), Op("snapshot", value=f"s{number}")]
    for number in context.chance.sample(range(pages), pages):
        program += [Op("restore", value=f"s{number}"), *events(played[number + 1 : number + 4])]
    return program


# --- repeatability ---------------------------------------------------------------------------------------

REPEATS = 10


def repeatability(context: Context) -> Finding:
    """One snapshot, ten restores: equal continuations; its bytes never change and are a fixed point."""
    if context.nondeterministic:
        finding = Finding("continuations are left to the check distribution")
    else:
        programs = (_repeats(context, episode, at) for episode, at in occasions(context))
        finding = context.search(programs, "snapshot")
        if finding.passed:
            finding.detail += f", each restored {REPEATS} times"
    if not finding.passed or context.unwritten is not None:
        return finding
    context.start()
    changed = _bytes_change(context)
    if changed is None:
        finding.detail += "; bytes never change"
    return changed or finding


def _repeats(context: Context, episode: Episode, at: int) -> Program:
    onward = events(episode.all_events[at : at + 30])
    program = [Op("make"), *events(episode.all_events[:at]), Op("snapshot", value="s")]
    for _ in range(REPEATS):
        program += [Op("restore", value="s"), *onward]
    return program


def _bytes_change(context: Context) -> Finding | None:
    """The finding where the bytes of a snapshot change while it is used; None where they hold."""
    for number, (episode, at) in enumerate(occasions(context)):
        found = _bytes_at(context, episode.all_events, at)
        if found:
            program = [Op("make"), *events(episode.all_events[:at]), Op("snapshot", value="s")]
            reproduce = {
                "seed": episode.seed,
                "actions": [printable(e.value) for e in episode.all_events[:at] if e.kind == "step"],
                "code": "\n".join([*map(str, program), f"# {found}"]),
            }
            return Finding(found, passed=False, reproduce=reproduce)
        if number >= 4 or context.time_is_up:
            break
    return None


def _bytes_at(context: Context, played: Sequence[Event], at: int) -> str | None:
    env = context.target.make()
    try:
        for event in played[:at]:
            perform(env, event, context.comparison)
        with env.snapshot() as snapshot:
            before = _fresh_bytes(snapshot)
            for _ in range(REPEATS):
                env.restore(Snapshot.from_bytes(before))
                if env.capability != "filesystem":  # there each snapshot may name files of its own
                    with env.snapshot() as again:
                        different = _payload_difference(before, again.to_bytes())
                    if different:
                        return f"serialise, restore, serialise is no fixed point: {different}"
                env.restore(snapshot)
                for event in played[at : at + 10]:
                    perform(env, event, context.comparison)
                after = _fresh_bytes(snapshot)
                if after != before:
                    return f"the snapshot changed meanwhile: {_payload_difference(before, after)}"
    finally:
        env.close()
    return None


def _fresh_bytes(snapshot: Snapshot) -> bytes:
    return Snapshot(snapshot.origin, snapshot.payload()).to_bytes()  # a Snapshot remembers its first bytes


def _payload_difference(before: bytes, after: bytes) -> Difference | None:
    """Where the contents of two snapshots differ; numbers by value, for set_state may convert them."""
    if before == after:
        return None
    names = ("state", "np_random", "wrappers", "last")
    left, right = (Snapshot.from_bytes(data).payload() for data in (before, after))
    if len(left) == len(right) == len(names):
        left, right = dict(zip(names, left)), dict(zip(names, right))
    return Comparison(ignore=tuple(f"last.1.{path[5:]}" for path in DEFAULT_IGNORE)).difference(left, right)


# --- transparency ----------------------------------------------------------------------------------------


def transparency(context: Context) -> Finding:
    """A trace with snapshots at every step equals the trace without."""
    return context.search((_watched(episode) for episode in context.episodes), "episode")


def _watched(episode: Episode) -> Program:
    program = [Op("make")]
    for event in episode.all_events:
        program += [*events([event]), Op("snapshot", value="s"), Op("snapshot", value="t")]
    return program
