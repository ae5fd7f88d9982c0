"""`bpo/WebShop-v0` as a Gymnasium environment."""

from __future__ import annotations

import itertools
import pickle
import random
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import bpo_envs  # noqa: F401  (registers the id)
from bpo_envs.webshop.env import OBSERVATION_MODES, WebShopEnv
from bpo_envs.webshop.session import act

COMMON_INFO = {
    "task_id",
    "task_digest",
    "instruction",
    "admissible_actions",
    "won",
    "score",
    "steps_left",
}
OWN_INFO = {"available_actions", "goal_idx", "catalog", "catalog_fingerprint"}


@pytest.fixture
def env():
    return WebShopEnv(split="all")


def buy(env, goal_idx=0, options=True):
    """Buy the product that the goal was written for, with its options or none; return the last step."""
    env.reset(options={"goal_idx": goal_idx})
    goal = env.unwrapped.goal
    env.step(f"search[{goal.name}]")
    env.step(f"click[{goal.asin}]")
    for value in goal.goal_options.values() if options else ():
        env.step(f"click[{value}]")
    return env.step("click[buy now]")


def goal_with_options(env):
    return next(i for i, goal in enumerate(env.catalog.goals) if goal.goal_options)


def walk(env, choices):
    """Take an admissible action per number, up to the purchase; yield each info on the way."""
    _, info = env.reset(options={"goal_idx": 5})
    for choice in choices:
        yield info
        actions = info["admissible_actions"]
        *_, terminated, _, info = env.step(actions[choice % len(actions)])
        if terminated:
            break
    yield info


# --- Gymnasium's contract


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_gymnasiums_checker_is_content(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("bpo/WebShop-v0", observation_mode=mode, render_mode="ansi").unwrapped)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors_return_the_true_text(mode):
    alone = [gym.make("bpo/WebShop-v0") for _ in range(2)]
    expected = [env.reset(seed=3 + i)[0] for i, env in enumerate(alone)]
    vector = gym.make_vec("bpo/WebShop-v0", num_envs=2, vectorization_mode=mode)
    try:
        observations, infos = vector.reset(seed=3)
        assert list(observations) == expected
        queries = [f"search[{instruction}]" for instruction in infos["instruction"]]
        observations, *_ = vector.step(queries)
        assert list(observations) == [env.step(query)[0] for env, query in zip(alone, queries)]
    finally:
        vector.close()


def test_pages_of_the_real_products_fit_the_observation_space(shared):
    env = WebShopEnv(shared / "data" / "webshop" / "real1000", split="all", observation_mode="html")
    longest = max(
        env.catalog.products,
        key=lambda p: max(len(p.description), sum(map(len, p.bullets)), len(str(p.options))),
    )
    env.reset(seed=0)
    for action in (f"search[{longest.title}]", f"click[{longest.asin}]", "click[description]"):
        assert env.step(action)[0] in env.observation_space


# --- tasks


def test_a_seed_only_picks_the_task(env):
    first = env.reset(seed=7)[1]["task_id"]
    assert env.reset(seed=7)[1]["task_id"] == first
    assert len({env.reset(seed=seed)[1]["task_id"] for seed in range(20)}) > 15


def test_resets_without_a_seed_go_through_the_panel(env):
    env.reset(seed=0)
    assert len({env.reset()[1]["task_id"] for _ in range(20)}) > 15


@pytest.mark.parametrize(("split", "first"), [("test", 0), ("dev", 500), ("train", 1500), ("all", 0)])
def test_an_index_is_a_position_in_the_split(split, first):
    env = WebShopEnv(split=split)
    _, info = env.reset(options={"index": 3})
    assert (info["goal_idx"], info["task_id"]) == (first + 3, f"synthetic-{first + 3}")


def test_a_task_can_be_asked_for_by_its_id(env):
    assert env.reset(options={"task_id": "synthetic-77"})[1]["goal_idx"] == 77


def test_a_goal_can_be_asked_for_by_its_place_in_the_whole_order():
    assert WebShopEnv(split="dev").reset(options={"goal_idx": 3})[1]["task_id"] == "synthetic-3"


def test_a_goal_index_may_be_numpys(env):
    assert env.reset(options={"goal_idx": np.int64(3)})[1]["goal_idx"] == 3


@pytest.mark.parametrize(
    "options",
    [
        {"goal_idx": -1},
        {"goal_idx": 5296},
        {"goal_idx": "3"},
        {"goal_idx": True},
        {"goal_idx": 1, "index": 1},
    ],
)
def test_a_goal_that_there_is_not_is_an_error(env, options):
    with pytest.raises(ValueError, match="give goal_idx alone, an integer from 0 to 5295"):
        env.reset(options=options)


def test_a_task_of_another_split_is_an_error():
    with pytest.raises(ValueError, match="synthetic-3"):
        WebShopEnv(split="dev").reset(options={"task_id": "synthetic-3"})


def test_the_panel_names_what_info_names(env):
    _, info = env.reset(options={"index": 9})
    panel = env.task_panel
    assert (panel.task_ids[9], panel.task_digests[9]) == (info["task_id"], info["task_digest"])


# --- what reset and step return


def test_info_holds_the_common_fields_and_the_shops_own(env):
    _, info = env.reset(seed=0)
    assert set(info) == COMMON_INFO | OWN_INFO
    *_, info = env.step("search[lamp]")
    assert set(info) == COMMON_INFO | OWN_INFO


def test_the_instruction_is_the_goals(env):
    observation, info = env.reset(seed=0)
    assert info["instruction"] == env.goal.instruction_text
    assert info["instruction"] in observation


def test_a_perfect_purchase_wins(env):
    goal_idx = goal_with_options(env)
    _, reward, terminated, truncated, info = buy(env, goal_idx)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["score"], info["won"]) == (1.0, True)


def test_before_the_purchase_nothing_is_earned(env):
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("search[lamp]")
    assert (reward, terminated, info["score"], info["won"]) == (0.0, False, 0.0, False)


def test_the_end_explains_the_score(env):
    goal_idx = goal_with_options(env)
    _, reward, _, _, info = buy(env, goal_idx, options=False)
    parts = info["reward_parts"]
    earned = sum(parts[f"w_{part}"] * parts[f"r_{part}"] for part in ("att", "option", "price"))
    assert reward == pytest.approx(parts["r_type"] * earned)
    assert 0 < reward < 1


def test_reward_mode_success_counts_the_perfect_purchase_only():
    env = WebShopEnv(split="all", reward_mode="success")
    goal_idx = goal_with_options(env)
    assert buy(env, goal_idx)[1] == 1.0
    _, reward, _, _, info = buy(env, goal_idx, options=False)
    assert reward == 0.0 < info["score"]


@pytest.mark.parametrize("action", ["", "nonsense", "click[buy now]", "search[]", "Click[search]", "\n"])
def test_a_malformed_action_is_a_no_op_that_counts_as_a_step(env, action):
    before, _ = env.reset(seed=0)
    after, reward, terminated, truncated, _ = env.step(action)
    assert (after, reward, terminated, truncated) == (before, 0.0, False, False)
    assert env.session.steps == 1


def test_steps_left_counts_down_to_the_limit():
    env = gym.make("bpo/WebShop-v0", max_episode_steps=3)
    _, info = env.reset(seed=0)
    left = [info["steps_left"]]
    truncated = False
    while not truncated:
        *_, truncated, info = env.step("?")
        left.append(info["steps_left"])
    assert left == [3, 2, 1, 0]


def test_without_a_limit_there_are_no_steps_left_to_tell(env):
    assert env.reset(seed=0)[1]["steps_left"] is None


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_the_observation_is_the_page_in_the_chosen_mode(mode):
    env = WebShopEnv(split="all", observation_mode=mode)
    assert env.reset(seed=0)[0] == env.page() == env.page(mode)
    assert env.step("search[lamp]")[0] == env.page(mode)


def test_any_mode_of_the_page_can_be_had(env):
    env.reset(options={"goal_idx": 4})
    env.step("search[lamp]")
    assert env.page("url") == "http://127.0.0.1:3000/search_results/4/lamp/1"
    assert env.page("text_rich").startswith("Instruction:\n")
    assert env.page("html").startswith("<!DOCTYPE html>")


def test_the_ansi_rendering_is_the_rich_text():
    env = WebShopEnv(render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == env.page("text_rich")


# --- admissible actions


@given(st.lists(st.integers(0, 100), max_size=10))
def test_every_admissible_action_can_be_carried_out(choices):
    env = WebShopEnv(split="all")
    for info in walk(env, choices):
        state = env.get_state()
        for action in info["admissible_actions"]:
            assert act(env.catalog, env.session, action), action
            env.set_state(state)


def test_admissible_searches_are_the_instruction_in_shorter_and_shorter_words(env):
    goal_idx = next(
        i
        for i, goal in enumerate(env.catalog.goals)
        if len(goal.goal_options) == 2 and goal.price_upper < 1000
    )
    _, info = env.reset(options={"goal_idx": goal_idx})
    queries = [action[len("search[") : -1] for action in info["admissible_actions"]]
    assert queries[0] == info["instruction"]
    assert "price lower" not in queries[1]
    assert not any(value in queries[2] for value in env.goal.goal_options)
    assert all(longer.startswith(shorter) for longer, shorter in itertools.pairwise(queries))


def test_what_cannot_be_clicked_is_not_admissible(env):
    product = next(p for p in env.catalog.products if any("[" in v for vs in p.options.values() for v in vs))
    (value,) = [v for values in product.options.values() for v in values if v.endswith("]")]
    env.reset(seed=0)
    env.step(f"search[{product.title}]")
    *_, info = env.step(f"click[{product.asin}]")
    assert value in info["available_actions"]["clickables"]
    assert f"click[{value}]" not in info["admissible_actions"]


def test_changing_an_info_changes_no_later_one(env):
    _, info = env.reset(seed=0)
    info["admissible_actions"].clear()
    info["available_actions"]["clickables"].clear()
    *_, after = env.step("?")
    assert after["admissible_actions"] and after["available_actions"]["clickables"]


# --- state


@given(st.lists(st.integers(0, 100), max_size=6), st.lists(st.integers(0, 100), max_size=6))
def test_another_environment_goes_on_from_a_state_as_if_nothing_had_happened(before, after):
    env, other = WebShopEnv(split="all"), WebShopEnv(split="test")
    *_, info = walk(env, before)
    assert other.set_state(env.get_state()) == (env.page(), info)
    for choice in after:
        if env.session.done:
            break
        actions = info["admissible_actions"]
        action = actions[choice % len(actions)]
        step = env.step(action)
        assert step == other.step(action)
        info = step[-1]


def test_a_bought_product_is_scored_again_on_restoring(env):
    *_, info = buy(env, goal_with_options(env), options=False)
    other = WebShopEnv(split="all")
    observation, restored = other.set_state(env.get_state())
    assert restored == info
    assert observation == env.page()


def test_a_state_does_not_hold_the_generator(env):
    env.reset(seed=0)
    state = env.get_state()
    following = [env.reset()[1]["task_id"] for _ in range(3)]
    env.reset(seed=0)
    env.set_state(state)
    assert [env.reset()[1]["task_id"] for _ in range(3)] == following


def test_it_pickles_small_and_goes_on(env):
    env.reset(seed=0)
    env.step("search[lamp]")
    packed = pickle.dumps(env)
    assert len(packed) < 3_000
    other = pickle.loads(packed)
    assert other.catalog is env.catalog
    assert other.step("click[next >]") == env.step("click[next >]")
    assert other.reset()[1] == env.reset()[1]


def test_the_global_generators_neither_matter_nor_move():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), pickle.dumps(np.random.get_state())
    env = WebShopEnv(split="all", catalog_seed=9, special_words=True)
    first = [env.reset(seed=4), env.step("search[<r>]")]
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before
    random.seed(2)
    assert [env.reset(seed=4), env.step("search[<r>]")] == first


def test_environments_of_one_goal_do_not_disturb_each_other():
    """The original's server shares sessions by number: two shoppers with goal 9 would share one."""
    one, other = WebShopEnv(split="all"), WebShopEnv(split="all")
    one.reset(options={"goal_idx": 9})
    start, _ = other.reset(options={"goal_idx": 9})
    one.step("search[lamp]")
    assert other.page() == start


# --- errors


@pytest.mark.parametrize("action", [None, 3, ["search[x]"], b"search[x]"])
def test_an_action_of_another_type_is_an_error(env, action):
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"an action is a string such as .*given: "):
        env.step(action)


@pytest.mark.parametrize(
    "use", [lambda env: env.step("search[x]"), lambda env: env.page(), WebShopEnv.get_state]
)
def test_before_the_first_reset_there_is_no_episode(env, use):
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        use(env)


def test_a_step_after_the_purchase_is_an_error(env):
    buy(env)
    with pytest.raises(RuntimeError, match="the product was bought; call reset"):
        env.step("search[x]")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("split", "eval"),
        ("goals", "easy"),
        ("observation_mode", "image"),
        ("reward_mode", "dense"),
        ("render_mode", "human"),
        ("nouns", "guess"),
    ],
)
def test_an_unknown_setting_is_an_error_that_lists_the_known(name, value):
    with pytest.raises(ValueError, match=rf"unknown {name}.*{value}.*expected"):
        WebShopEnv(**{name: value})


def test_data_and_its_other_name_exclude_each_other(tmp_path):
    with pytest.raises(ValueError, match="two names of one thing"):
        WebShopEnv(data=tmp_path, data_dir=tmp_path)


def test_data_dir_is_read_as_data(tmp_path):
    with pytest.raises(FileNotFoundError, match="no products in"):
        WebShopEnv(data_dir=tmp_path)


def test_an_unknown_page_mode_is_an_error(env):
    env.reset(seed=0)
    with pytest.raises(ValueError, match="unknown page mode='pdf'"):
        env.page("pdf")
