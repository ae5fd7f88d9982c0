"""distribution: where answers are random by declaration, continuations after a restore have the same law.

At many moments the environment goes on once undisturbed (U) and after restores: at once (R, and again R'),
after wandering off, and in another instance. If restoring is faithful, U, R and R' are exchangeable given the
moment. Two tests for each feature x of a continuation, both by flipping signs of paired differences:
the mean of x(U) - x(R), and the spread |x(U) - x(R)| - |x(R) - x(R')|, which finds a restore that forgets
where the moment was even if it errs to both sides alike. All p-values are corrected by Holm's method, and a
rejection counts only when a second, fresh sample rejects it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from ...snapshot_env import SnapshotEnv
from ..context import Context, Finding
from ..oracle import RandomPolicy, perform
from ..program import printable

LEVEL = 0.01  # of all tests of one sample together
_FLIPS = 20_000
_HORIZON = 12
_LEAVES = 12  # numbers taken from one observation
_LEAST = 16  # pairs; fewer cannot reject at the level above
_MOST = 1_000  # pairs; a fast machine has time for more than the table of flipped signs has memory for

Features = dict[str, float]
WAYS = ("restored at once", "restored after wandering off", "restored in another instance")


def check(context: Context) -> Finding:
    if not context.nondeterministic:
        return Finding("answers are deterministic; the exact checks apply", skipped=True)
    moments = list(_sample(context, 0))
    if isinstance(moments[-1], Finding):
        return moments[-1]
    rejected = _rejected(moments, None)
    if rejected:
        context.start(6.0)
        again = _rejected(list(_sample(context, 1)), set(rejected))
        if again:
            worst = min(again, key=lambda test: again[test])
            detail = (
                f"{worst[0]}: {worst[2]} of {worst[1]!r} differs from undisturbed continuations "
                f"(p = {again[worst]:.2g} by Holm, {len(moments)} moments, confirmed by a second sample)"
            )
            return Finding(detail, False, reproduce=_reproduce(context, worst[0]))
    shift = _detectable(len(moments), 2 * len(WAYS) * len(moments[0]["undisturbed"]))
    return Finding(
        f"{len(moments)} moments, {len(moments[0]['undisturbed'])} features: no difference. A shift of "
        f"{shift:.2f} standard deviations would have been found with probability 0.9"
    )


# --- sampling --------------------------------------------------------------------------------------------


def _sample(context: Context, round_: int) -> Iterator[Any]:
    """One dict of features for each moment; a Finding instead where a restore returns something else."""
    env, other = context.target.make(), context.target.make()
    try:
        number = 0
        while number < _LEAST or (number < _MOST and not context.time_is_up):
            seed = 7919 * round_ + number
            number += 1
            answer = _walk(context, env, seed, context.chance.randint(0, 15))
            with env.snapshot() as snapshot:
                found = {"undisturbed": _continue(context, env, answer, seed)}
                back = context.comparison.answer(**dict(zip(("observation", "info"), env.restore(snapshot))))
                expected = {key: answer[key] for key in ("observation", "info")}
                different = context.comparison.difference(expected, back)
                if different:
                    yield Finding(f"what restore returned: {different}", False)
                    return
                found[WAYS[0]] = _continue(context, env, back, seed)
                env.restore(snapshot)
                found["again"] = _continue(context, env, back, seed)
                _walk(context, env, seed + 1, 6)
                env.restore(snapshot)
                found[WAYS[1]] = _continue(context, env, back, seed)
                other.restore(snapshot)
                found[WAYS[2]] = _continue(context, other, back, seed)
            yield found
    finally:
        env.close()
        other.close()


def _walk(context: Context, env: SnapshotEnv, seed: int, steps: int) -> dict[str, Any]:
    """A new episode, up to `steps` steps of it that do not end it; returns the last answer."""
    answer = perform(env, context.reset_event(seed), context.comparison)
    choose = RandomPolicy(seed, persistence=(0.0, 0.8)[seed % 2])
    policy = context.settings.policy or choose
    for _ in range(steps):
        with env.snapshot() as before:
            following = _act(context, env, policy, answer)
            if following["terminated"] or following["truncated"]:
                env.restore(before)
                break
        answer = following
    return answer


def _act(context: Context, env: SnapshotEnv, policy: Any, answer: dict[str, Any]) -> dict[str, Any]:
    observation, reward, terminated, truncated, info = env.step(
        policy(answer["observation"], answer["info"], env)
    )
    return context.comparison.answer(
        observation=observation, reward=reward, terminated=terminated, truncated=truncated, info=info
    )


def _continue(context: Context, env: SnapshotEnv, answer: dict[str, Any], seed: int) -> Features:
    """Features of a continuation under a policy that is the same for all continuations of the moment."""
    policy = context.settings.policy or RandomPolicy(seed + 1, persistence=0.3)
    features: Features = {}
    total, length, start = 0.0, 0, _numbers(answer["observation"], "change of the first observation")
    for length in range(1, _HORIZON + 1):
        answer = _act(context, env, policy, answer)
        total += float(answer["reward"])
        if length == 1:
            features["reward of the first step"] = float(answer["reward"])
            first = _numbers(answer["observation"], "first observation")
            features.update(first)
            # Against where it stood, so that a restore to a random place shows: its law overall is the same.
            features.update({n: abs(b - a) for (n, a), b in zip(start.items(), first.values())})
        if answer["terminated"] or answer["truncated"]:
            break
    features.update({"return": total, "length": float(length)})
    features.update(_numbers(answer["observation"], "last observation"))
    return features


def _numbers(observation: Any, name: str) -> Features:
    """The first numbers in an observation; of anything else a number that depends on its text."""
    leaves: list[float] = []

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value, key=repr):
                visit(value[key])
        elif isinstance(value, (list, tuple)):
            for item in value:
                visit(item)
        elif (
            isinstance(value, (np.ndarray, np.generic, int, float, bool))
            and np.asarray(value).dtype.kind in "biuf"
        ):
            leaves.extend(np.asarray(value, float).ravel()[: _LEAVES - len(leaves)].tolist())
        else:
            digest = hashlib.blake2b(repr(value).encode(), digest_size=4).digest()
            leaves.append(int.from_bytes(digest, "little") / 2**32)

    visit(observation)
    padded = [value if np.isfinite(value) else -1e9 for value in leaves[:_LEAVES]]
    return {f"{name}[{index}]": value for index, value in enumerate(padded)}


# --- testing ---------------------------------------------------------------------------------------------

Test = tuple[str, str, str]  # way, feature, "the mean" or "the spread"


def _rejected(moments: list[dict[str, Features]], only: set[Test] | None) -> dict[Test, float]:
    """Holm-adjusted p-values of the rejected tests."""
    chance = np.random.default_rng(0)
    names = [name for name in moments[0]["undisturbed"] if all(name in m[w] for m in moments for w in m)]
    signs = chance.choice((-1.0, 1.0), size=(_FLIPS, len(moments)))
    p_values: dict[Test, float] = {}
    for name in names:
        column = {way: np.array([m[way][name] for m in moments]) for way in moments[0]}
        between = np.abs(column[WAYS[0]] - column["again"])
        for way in WAYS:
            apart = column["undisturbed"] - column[way]
            for what, differences in (("the mean", apart), ("the spread", np.abs(apart) - between)):
                if only is None or (way, name, what) in only:
                    p_values[way, name, what] = _sign_flip(differences, signs)
    return {test: p for test, p in _holm(p_values).items() if p < LEVEL}


def _sign_flip(differences: np.ndarray, signs: np.ndarray) -> float:
    """Two-sided p-value of a mean of 0, by random signs."""
    seen = abs(differences.sum())
    if seen == 0:
        return 1.0
    flipped = np.abs(signs @ differences)
    return float((1 + (flipped >= seen * (1 - 1e-12)).sum()) / (1 + len(signs)))


def _holm(p_values: dict[Test, float]) -> dict[Test, float]:
    adjusted, worst = {}, 0.0
    for rank, test in enumerate(sorted(p_values, key=lambda test: p_values[test])):
        worst = max(worst, min(1.0, p_values[test] * (len(p_values) - rank)))
        adjusted[test] = worst
    return adjusted


def _detectable(pairs: int, tests: int) -> float:
    """The shift of a mean, in standard deviations of one continuation, found with probability 0.9."""
    normal = NormalDist()
    return (normal.inv_cdf(1 - LEVEL / (2 * tests)) + normal.inv_cdf(0.9)) * (2 / pairs) ** 0.5


def _reproduce(context: Context, way: str) -> dict[str, Any]:
    actions = [printable(e.value) for e in context.episodes[0].events[1:]]
    return {
        "seed": context.settings.seed,
        "actions": actions[:_HORIZON],
        "code": f"# {way}: sample continuations of many moments; one alone proves nothing",
    }
