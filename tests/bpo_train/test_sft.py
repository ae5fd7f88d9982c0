"""Imitation: rows as in a rollout, the loss on what is to be learned, and a curriculum of stages."""

from __future__ import annotations

import dataclasses
import io
import random

import pytest
import torch
from rich.console import Console

from bpo_envs.webshop.expert import NoisyExpert
from bpo_train.collect.collector import GrowthOptions
from bpo_train.collect.environment import make_environment
from bpo_train.config import Config, EnvironmentConfig, ImitationConfig, RolloutConfig
from bpo_train.engine import Sampling
from bpo_train.imitation import imitation_policy
from bpo_train.policy import FormatOptions, TinyModel, make_format, new_policy
from bpo_train.sft import Episode, Stage, as_text, copy_row, episode_row, imitate, play, play_all, rows_of
from rollouts import COMPACT, FORMAT, TOKENIZER, ScriptedEngine, first_tasks, make_collector, pool_of, shop
from tiny_models import CHATML, chat_tokenizer, tiny_tokenizer

SHOP = shop(split="train", steps=8)
TASKS = first_tasks(SHOP, 4)
INFO = {"instruction": "", "admissible_actions": []}
EPISODE = Episode(("see ", INFO), [("go", "more ", INFO), ("on", "end ", INFO)], 1.0, True)
PLAIN = make_format(TOKENIZER, FormatOptions())


@pytest.fixture(scope="module")
def env():
    made = make_environment(SHOP)
    yield made
    made.close()


# Episodes


def test_an_episode_is_what_the_expert_did_and_saw(env):
    episode = play(env, NoisyExpert(), TASKS[0], random.Random(0))
    text, info = env.reset(**TASKS[0].reset_arguments(seed=0))
    assert episode.prompt == (text, info)
    for action, seen, seen_info in episode.turns:
        text, _, terminated, truncated, info = env.step(action)
        assert (text, info) == (seen, seen_info)
    assert terminated or truncated
    assert (episode.score, episode.won) == (info["score"], info["won"])


def test_episodes_go_round_the_tasks_and_depend_on_the_seed(env):
    noisy = NoisyExpert(0.5, 0.5, 0.5, 0.5)
    one, again, other = (play_all(env, noisy, TASKS, 6, seed) for seed in (0, 0, 1))
    assert [e.prompt[1]["task_id"] for e in one] == [TASKS[i % 4].id for i in range(6)]
    assert one == again != other


def test_an_episode_as_text():
    assert as_text(EPISODE) == "see > go\nmore > on\nend "


# Rows


def weighted(row) -> list[tuple[int, float]]:
    """Every token of a row with its weight as a target."""
    weights = dict(zip(row.targets.tolist(), row.weights.tolist()))
    return [(int(token), weights.get(i, 0.0)) for i, token in enumerate(row.tokens)]


def test_actions_are_learned_and_observations_as_much_as_asked_for():
    def parts(weight: float) -> list[tuple[int, float]]:
        pieces = [("see >", weight), (" go\n", 1.0), ("more >", weight), (" on\n", 1.0)]
        return [(token, w) for text, w in pieces for token in TOKENIZER.encode(text)]

    assert weighted(episode_row(EPISODE, PLAIN, Stage(1))) == parts(0.0)
    found = weighted(episode_row(EPISODE, PLAIN, Stage(1, observation_weight=0.25)))
    assert found[0][1] == 0  # nothing stands before the first token to predict it from
    assert found[1:] == parts(0.25)[1:]


def test_first_rows_end_with_the_first_action():
    row = episode_row(EPISODE, PLAIN, Stage(1, rows="first"))
    assert TOKENIZER.decode(row.tokens) == "see > go\n"


def test_targets_are_predicted_from_the_token_before():
    row = episode_row(EPISODE, PLAIN, Stage(1))
    assert row.predictors.tolist() == [t - 1 for t in row.targets.tolist()]


@pytest.mark.parametrize("kind", ["plain", "chat"])
def test_an_imitated_episode_is_the_row_that_a_rollout_of_it_would_be(env, kind):
    form = FORMAT
    if kind == "chat":
        form = make_format(chat_tokenizer(CHATML), FormatOptions(format="chat"))
    episode = play(env, NoisyExpert(), TASKS[1], random.Random(0))
    actions = [action for action, _, _ in episode.turns]

    class Same(ScriptedEngine):
        def _answer(self, request, sampling):
            spoken = form.action_tokens(actions[request.key[-1]])
            answer = super()._answer(dataclasses.replace(request, cache=None), sampling)
            return dataclasses.replace(
                answer, tokens=spoken, logprobs=[0.0] * len(spoken), entropies=None, stopped=True
            )

    engine = Same(lambda text, key: "x")
    collector = make_collector(
        engine, pool_of(SHOP), form=form, sampling=Sampling(form.stop_ids, 200), growth=GrowthOptions(10**6)
    )
    (tree,) = collector.collect(TASKS[1:2], (1,))
    assert tree.row(0) == episode_row(episode, form, Stage(1)).tokens.tolist()


@pytest.mark.parametrize("from_start", [True, False])
def test_copy_rows_repeat_what_stands_before_the_separator(from_start):
    rng = random.Random(0)
    starts = set()
    for _ in range(50):
        row = copy_row(rng, 10, 40, 3, from_start)
        tokens = row.tokens.tolist()
        cut = tokens.index(3)
        source, copy = tokens[:cut], tokens[cut + 1 :]
        assert 8 <= len(source) <= 16
        assert all(10 <= token < 40 for token in source)
        assert source[len(source) - len(copy) :] == copy
        starts.add(len(source) - len(copy))
        # learned from the second repeated token on: the first could be any
        assert row.targets.tolist() == list(range(cut + 2, len(tokens)))
    assert (starts == {0}) == from_start


# The diet of a stage


def test_every_episode_is_seen_once_before_any_is_seen_again():
    episodes = [episode_row(EPISODE, PLAIN, Stage(1)) for _ in range(6)]
    rows = rows_of(Stage(steps=9, batch=2), episodes, 300, 3)
    seen = [id(row) for step in range(9) for row in rows(step)]
    for epoch in range(3):
        assert sorted(seen[6 * epoch : 6 * epoch + 6]) == sorted(map(id, episodes))


def test_copy_rows_are_mixed_into_every_second_step():
    episodes = [episode_row(EPISODE, PLAIN, Stage(1))]
    rows = rows_of(Stage(steps=4, batch=3, copy_rows=2), episodes, 300, 3)
    assert [len(rows(step)) for step in range(4)] == [5, 3, 5, 3]


def test_a_copy_stage_starts_with_copies_from_the_start():
    rows = rows_of(Stage(steps=10, rows="copy", batch=20), [], 300, 3)

    def whole(step: int) -> bool:
        return all(
            len(row.tokens) % 2 == 1 and len(row.targets) == len(row.tokens) // 2 - 1 for row in rows(step)
        )

    assert [whole(step) for step in (0, 5, 6, 9)] == [True, True, False, False]


def test_a_diet_depends_on_the_seed_alone():
    def tokens(seed: int) -> list:
        rows = rows_of(Stage(steps=2, rows="copy", seed=seed), [], 300, 3)
        return [row.tokens.tolist() for step in range(2) for row in rows(step)]

    assert tokens(0) == tokens(0) != tokens(1)


# Training


def test_imitation_lowers_the_loss_per_weighted_token():
    policy = new_policy(tiny_tokenizer(), TinyModel(32, 1, 4, 2, 64), FormatOptions(), 0)
    rows = [episode_row(EPISODE, policy.format, Stage(1))]
    with torch.no_grad():
        logits = policy.model(rows[0].tokens[None]).logits[0].log_softmax(-1)
    chosen = logits[rows[0].predictors, rows[0].tokens[rows[0].targets]]
    losses = [loss for _, loss in imitate(policy, lambda step: rows, Stage(steps=60, learning_rate=0.01))]
    assert losses[0] == pytest.approx(-float(chosen.mean()), rel=1e-5)
    assert losses[-1] < 0.2 * losses[0]


def test_the_loss_does_not_depend_on_micro_batches():
    def losses(max_tokens: int) -> list[float]:
        policy = new_policy(tiny_tokenizer(), TinyModel(32, 1, 4, 2, 64), FormatOptions(), 0)
        rows = [episode_row(EPISODE, policy.format, Stage(1, rows=rows)) for rows in ("first", "episodes")]
        return [loss for _, loss in imitate(policy, lambda step: rows, Stage(steps=5), max_tokens)]

    assert losses(1) == pytest.approx(losses(10**6), rel=1e-4)


@pytest.mark.parametrize("wrong", [{"rows": "all"}, {"steps": 0}, {"batch": 0}, {"episodes": 0}], ids=str)
def test_stages_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="a stage"):
        Stage(**{"steps": 1, **wrong})


# From nothing to a policy


CONFIG = Config(
    environment=EnvironmentConfig(
        env="bpo/WebShop-v0",
        env_wrappers=(COMPACT,),
        max_episode_steps=8,
        expert="bpo_envs.webshop.expert:NoisyExpert",
        expert_kwargs={"query": 0.5},
    ),
    rollout=RolloutConfig(max_new_tokens=24, context_limit=1024),
    tiny=TinyModel(16, 1, 4, 2, 1024, 400),
    imitation=ImitationConfig(
        tokenizer_episodes=20,
        stages=[
            {"rows": "copy", "steps": 2, "batch": 2},
            {"rows": "first", "steps": 2, "batch": 2, "episodes": 10},
            {"rows": "episodes", "steps": 2, "batch": 2, "episodes": 10, "expert": {"query": 1.0}},
        ],
    ),
)


def made(**imitation) -> object:
    changed = dataclasses.replace(CONFIG, imitation=dataclasses.replace(CONFIG.imitation, **imitation))
    return imitation_policy(changed, Console(file=io.StringIO()))


def test_a_policy_is_made_of_nothing_and_always_the_same():
    one, other = made(), made()
    assert len(one.tokenizer) <= 400
    assert one.tokenizer.get_vocab() == other.tokenizer.get_vocab()
    for (name, a), b in zip(one.model.named_parameters(), other.model.parameters()):
        assert torch.equal(a, b), name


def test_imitation_needs_stages_with_episodes_and_an_expert():
    with pytest.raises(ValueError, match="nothing to imitate"):
        made(stages=[])
    with pytest.raises(ValueError, match="no stage has the expert's episodes"):
        made(stages=[{"rows": "copy", "steps": 1}])
    without = dataclasses.replace(CONFIG, environment=dataclasses.replace(CONFIG.environment, expert=""))
    with pytest.raises(ValueError, match="needs an `expert`"):
        imitation_policy(without, Console(file=io.StringIO()))
