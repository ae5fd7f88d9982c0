"""The compact view: pages and actions on the shipped catalogue, by hand, and snapshots under it."""

from __future__ import annotations

import random

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

import bpo_envs  # noqa: F401  (registers the ids)
from bpo_envs.webshop.compact import CompactView
from wrappers import Snapshot, SnapshotEnv

SOFA = 0  # "Find me button tufted sofa beds with storage chaise, and price lower than 990.00 dollars"
SLIPPERS = 1  # non slip house slippers with open toe ... with size: 5.5, and price lower than 120.00 dollars


def make(steps: int = 50, **kwargs) -> SnapshotEnv:
    env = gym.make(
        "bpo/WebShop-v0", max_episode_steps=steps, disable_env_checker=True, **{"split": "test", **kwargs}
    )
    return SnapshotEnv(CompactView(env.env))


@pytest.fixture
def env():
    made = make()
    yield made
    made.close()


def walk(env, actions, index: int = SOFA) -> list[str]:
    """The texts that the actions are answered with."""
    env.reset(options={"index": index})
    return [env.step(action)[0] for action in actions]


QUERY = "search button tufted sofa beds with storage chaise"

# Pages


def test_the_task_is_short_and_lower_case(env):
    text, _ = env.reset(options={"index": SOFA})
    assert text == "task: find me button tufted sofa beds with storage chaise, under $990\n"
    text, _ = env.reset(options={"index": SLIPPERS})
    assert text == (
        "task: find me non slip house slippers with open toe, rubber sole, memory foam with size: 5.5, "
        "under $120\n"
    )


def test_results_are_six_short_lines(env):
    assert walk(env, [QUERY]) == [
        "results:\n"
        "1 ollumfen handmade futon couch, button tufted, memory foam, $462\n"
        "2 hynzenfen versatile sleeper sectional, wood legs, spare bed, $1053\n"
        "3 rosmargar versatile futon couch, button tufted, storage chaise, $954\n"
        "4 ivekur cozy sleeper sectional - storage chaise - $172\n"
        "5 roscorhyn premium futon couch | storage chaise | $462\n"
        "6 ivekur everyday sleeper sectional | storage chaise | $172\n"
    ]


def test_numbers_mean_the_products_of_the_full_page_in_its_order(env):
    walk(env, [QUERY])
    listed = env.unwrapped.results()
    for number in (1, 6):
        walk(env, [QUERY, f"open {number}"])
        assert env.unwrapped.session.asin == listed[number - 1]


def test_an_item_shows_its_options(env):
    assert walk(env, ["search slippers", "open 1"], SLIPPERS)[-1] == (
        "item:\n"
        "color: heather pink; orange; heather green; teal | coral; pale black; deep olive; light brown\n"
        "size: 6; 9; 12 women | 10.5 men\n"
    )
    assert walk(env, [QUERY, "open 1"])[-1] == "item:\nno options\n"


def test_picking_is_acknowledged_and_kept(env):
    assert walk(env, ["search slippers", "open 1", "pick orange", "pick 9"], SLIPPERS)[2:] == ["ok\n"] * 2
    assert env.unwrapped.session.options == {"color": "orange", "size": "9"}


def test_back_leads_to_results_that_the_conversation_holds_already(env):
    assert walk(env, [QUERY, "open 1", "back"])[-1] == "results again\n"


def test_next_and_back_turn_pages_of_results(env):
    first, second, again = walk(env, ["search slippers", "next", "back"], SLIPPERS)
    assert first.startswith("results:\n1 ")
    assert second.startswith("results:\n1 ")
    assert second != first
    assert again == first


def test_a_search_is_possible_on_every_page(env):
    texts = walk(env, ["search slippers", QUERY, "open 1", "search slippers"])
    assert texts[3] == texts[0] != texts[1]


def test_nothing_found(env):
    assert walk(env, ["search zzzz", "next"]) == ["no results\n"] * 2


def test_a_purchase_ends_the_episode_with_the_shops_reward(env):
    walk(env, [QUERY, "open 1"])
    text, reward, terminated, truncated, info = env.step("buy")
    assert (text, reward, terminated, truncated) == ("bought\n", 1.0, True, False)
    assert (info["won"], info["score"]) == (True, 1.0)
    assert info["admissible_actions"] == []


@pytest.mark.parametrize("split", ["dev", "test"])
def test_rewards_are_those_of_the_full_pages(split):
    compact, full = make(split=split), gym.make("bpo/WebShop-v0", split=split)
    for index in range(10):
        walk(compact, ["search " + ["shoes", "lamp", "sofa"][index % 3], "open 2"], index)
        session = compact.unwrapped.session
        full.reset(options={"index": index})
        for action in (f"search[{' '.join(session.keywords)}]", f"click[{session.asin.lower()}]"):
            full.step(action)
        assert compact.step("buy")[1] == full.step("click[buy now]")[1]


# Actions


@pytest.mark.parametrize(
    "action",
    [
        "",
        "search",
        "search ",
        "frobnicate",
        "buy now",
        "buy",  # on a page of results
        "back",  # from the first page
        "open",
        "open 0",
        "open 7",
        "open x",
        "open ²",
        "open " + "9" * 5000,
        "pick 6",
        "click[buy now]",
        "search a\nb",
        "search x] bar[next >",
        "Open 1",
    ],
)
def test_what_means_nothing_changes_nothing_but_costs_a_step(env, action):
    walk(env, ["search slippers"], SLIPPERS)
    before = env.unwrapped.get_state()
    text, reward, terminated, _, info = env.step(action)
    assert (text, reward, terminated) == ("invalid\n", 0.0, False)
    assert env.unwrapped.get_state() == {**before, "steps": before["steps"] + 1}
    assert info["steps_left"] == 50 - 2


def test_only_an_items_own_options_can_be_picked(env):
    texts = walk(
        env, ["search slippers", "open 1", "pick 5.5", "pick", "pick color", "pick buy now"], SLIPPERS
    )
    assert texts[2:] == ["invalid\n"] * 4


def test_case_and_space_around_an_action_do_not_matter_for_numbers(env):
    assert walk(env, [QUERY, "  open   2 "])[-1].startswith("item:")


def test_an_option_called_like_another_page_leads_there_and_back(env):
    # the original's rule: the text alone decides. One product of the catalogue has a style "features".
    env.reset(options={"index": SOFA})
    asin = "B0ZD9L27NT"
    title = env.unwrapped.catalog.by_asin[asin].title
    env.step(f"search {title}")
    number = env.unwrapped.results().index(asin) + 1
    env.step(f"open {number}")
    text, *_, info = env.step("pick features")
    assert (text, info["admissible_actions"]) == ("page\n", ["back"])
    assert env.step("back")[0].startswith("item:\nstyle: classic; features; reviews")


def test_what_is_no_string_is_the_shops_error(env):
    env.reset(options={"index": SOFA})
    with pytest.raises(TypeError, match="an action is a string"):
        env.step(3)


def test_words_that_name_pages_in_a_query_do_no_harm(env):
    # the original looks for the page's name in the address, where the query stands too (`session`)
    for query in ("search_results lamp", "item_page lamp", "item_sub_page lamp", "done lamp"):
        for action in ("back", "next", "open 1", "back", "pick x"):
            walk(env, [f"search {query}", action, "back"])


def test_admissible_actions_can_be_carried_out_and_are_never_invalid(env):
    rng = random.Random(0)
    for index in range(25):
        _, info = env.reset(options={"index": index})
        done = False
        while not done and info["steps_left"] > 30:
            actions = info["admissible_actions"]
            assert actions
            text, _, done, _, info = env.step(rng.choice(actions))
            assert text != "invalid\n"


def test_every_option_that_is_offered_is_understood(env):
    # options with brackets and empty ones cannot be chosen: the original misreads them
    env.reset(options={"index": SOFA})
    product = env.unwrapped.catalog.by_asin["B0ZKVSW3V0"]
    assert list(product.options.values()) == [("plain", "black [2-pack]", "")]
    env.step(f"search {product.title}")
    number = env.unwrapped.results().index(product.asin) + 1
    *_, info = env.step(f"open {number}")
    assert info["admissible_actions"] == ["buy", "back", "pick plain"]


def test_one_who_found_nothing_can_search_again(env):
    env.reset(options={"index": SOFA})
    *_, info = env.step("search zzzz")
    assert info["admissible_actions"][0].startswith("search ")
    assert env.step(info["admissible_actions"][0])[0].startswith("results:")


def test_the_first_actions_are_searches(env):
    _, info = env.reset(options={"index": SOFA})
    assert info["admissible_actions"][1] == QUERY.replace("search", "search Find me")
    assert all(action.startswith("search ") for action in info["admissible_actions"])


# Gymnasium


def test_only_the_shop_can_be_shown():
    with pytest.raises(TypeError, match="CompactView shows bpo/WebShop-v0"):
        CompactView(gym.make("CartPole-v1"))


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_gymnasiums_checker_is_content():
    check_env(CompactView(gym.make("bpo/WebShop-v0", split="test").unwrapped), skip_render_check=True)


def test_gymnasium_can_make_the_stack_again(env):
    again = gym.make(env.spec)
    assert "CompactView" in str(again)
    assert again.reset(options={"index": SOFA})[0] == env.reset(options={"index": SOFA})[0]


def test_observations_and_actions_lie_in_their_spaces(env):
    text, info = env.reset(options={"index": SLIPPERS})
    assert text in env.observation_space
    for action in [*info["admissible_actions"], "é 漢 emoji 🙂"]:
        assert action in env.action_space
        assert env.step(action)[0] in env.observation_space


# Snapshots


PLAN = ["search slippers", "next", "open 3", "back", "frob", "open 1", "pick orange", "pick 9", "buy"]


@pytest.mark.parametrize("fork", range(len(PLAN)))
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another-instance"])
def test_a_snapshot_covers_the_view(fork, elsewhere):
    env = make(steps=20)
    seen = walk(env, PLAN[:fork], SLIPPERS)
    snapshot = env.snapshot()
    straight = [env.step(action) for action in PLAN[fork:]]
    other = make(steps=20) if elsewhere else env
    if elsewhere:
        other.reset(options={"index": SOFA})
    text, info = other.restore(Snapshot.from_bytes(snapshot.to_bytes()))
    assert text == (seen[-1] if seen else env.reset(options={"index": SLIPPERS})[0])
    assert info["steps_left"] == 20 - fork
    other.restore(snapshot)
    assert [other.step(action) for action in PLAN[fork:]] == straight
