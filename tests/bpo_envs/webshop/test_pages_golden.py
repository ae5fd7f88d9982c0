"""Every recorded page of the original, in every mode that it has, with rewards, flags and sessions.

Recorded from princeton-nlp/WebShop@64fa2a5 with Lucene 9.5; compared up to the purchase, which ends our
episodes. The counts keep a file from being skipped unnoticed.
"""

from __future__ import annotations

import pytest

from bpo_envs.webshop import session
from bpo_envs.webshop.compat import History
from bpo_envs.webshop.env import WebShopEnv
from webshop_goldens import FIXTURES, compare, read_lines, replay

PAGES_OF_V1 = {
    "episodes_edge": 228,
    "episodes_human": 246,
    "episodes_page_names": 43,
    "episodes_quirks": 267,
    "episodes_show_attrs": 89,
    "episodes_special_words": 25,
    "episodes_synthetic_directed": 136,
    "episodes_synthetic_random": 612,
}
PAGES_OF_REAL_1000 = {
    "episodes_directed_seed42": 99,
    "episodes_human_seed42": 245,
    "episodes_synthetic_seed42": 510,
}


@pytest.mark.parametrize("name", PAGES_OF_V1)
def test_shipped_catalogue_shows_what_the_original_showed(name):
    pages, differences = compare(FIXTURES / f"{name}.jsonl.gz")
    assert differences == []
    assert pages == PAGES_OF_V1[name]


@pytest.mark.parametrize("name", PAGES_OF_REAL_1000)
def test_real_1000_products_show_what_the_original_showed(name, shared):
    data = shared / "data" / "webshop" / "real1000"
    pages, differences = compare(data / "golden" / f"{name}.jsonl.gz", data=data)
    assert differences == []
    assert pages == PAGES_OF_REAL_1000[name]


def test_no_recorded_file_is_left_out():
    recorded = {path.name.split(".")[0] for path in FIXTURES.glob("episodes_*")}
    assert recorded == {*PAGES_OF_V1, "episodes_history"}


def test_purchases_have_the_recorded_sub_scores():
    bought = [
        (recorded["verbose_info"], ours["verbose_info"])
        for path in sorted(FIXTURES.glob("episodes_*.jsonl.gz"))
        if "history" not in path.name
        for _, recorded, ours in replay(path)
        if ours.get("done")
    ]
    assert len(bought) == 77
    assert [ours for _, ours in bought] == [recorded for recorded, _ in bought]


def test_history_is_shown_as_recorded():
    for row in read_lines(FIXTURES / "episodes_history.jsonl.gz"):
        env = History(WebShopEnv(split="all"), row["num_prev_obs"], row["num_prev_actions"])
        assert env.reset(options={"goal_idx": row["goal_idx"]})[0] == row["reset"]
        for step in row["steps"]:
            observation, reward, terminated, _, _ = env.step(step["action"])
            assert (observation, reward, terminated) == (step["observation"], step["reward"], step["done"])


def test_an_action_that_crashes_the_original_changes_nothing():
    crashes = [row for row in read_lines(FIXTURES / "episodes_special_words.jsonl.gz") if row.get("crash")]
    assert [row["crash"]["action"] for row in crashes] == ["search[<c>]"]
    env = WebShopEnv(split="all", special_words=True)
    before, _ = env.reset(options={"goal_idx": crashes[0]["goal_idx"]})
    after, reward, terminated, _, _ = env.step(crashes[0]["crash"]["action"])
    assert (after, reward, terminated) == (before, 0.0, False)


def test_the_state_machine_goes_on_after_a_purchase_as_the_original():
    """The environment ends there; the machine below it need not, and still gives the recorded pages."""
    beyond = 0
    for row in read_lines(FIXTURES / "episodes_synthetic_directed.jsonl.gz"):
        env = WebShopEnv(split="all")
        env.reset(options={"goal_idx": row["goal_idx"]})
        bought = False
        for step in row["steps"]:
            session.act(env.catalog, env.session, step["action"])
            assert env.available_actions() == step["available_actions"]
            assert env.page("url") == step["obs"]["url"]
            beyond += bought
            bought = bought or step["done"]
    assert beyond == 4
