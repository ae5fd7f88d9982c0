"""Task panels: digests, order, and what `reset(options=...)` may ask for."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.tasks import TaskPanel, choose_index, task_digest


def panel_of(*names: str) -> TaskPanel:
    return TaskPanel("toy", "train", names, tuple(task_digest({"name": name}) for name in names))


@pytest.fixture
def panel() -> TaskPanel:
    return panel_of("a", "b", "c", "d")


class Untouched:
    """A generator that must not be asked."""

    def integers(self, *_: object) -> int:
        raise AssertionError("a named task must not consume randomness")


def test_task_digest_is_the_sha256_of_canonical_json():
    # Canonical: sorted keys, no spaces, ASCII escapes. Checked against the bytes written out by hand.
    assert (
        task_digest({"b": [1, "é"], "a": None}) == hashlib.sha256(b'{"a":null,"b":[1,"\\u00e9"]}').hexdigest()
    )


def test_task_digest_refuses_what_has_no_canonical_form():
    with pytest.raises(ValueError, match="JSON"):
        task_digest({"price": float("nan")})
    with pytest.raises(TypeError):
        task_digest({"words": {"a", "b"}})


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())))
def test_key_order_does_not_count(data):
    assert task_digest(data) == task_digest(dict(reversed(list(data.items()))))


def test_panel_digest_depends_on_order_names_and_content(panel):
    others = [
        panel_of("b", "a", "c", "d"),
        TaskPanel("toy", "test", panel.task_ids, panel.task_digests),
        TaskPanel("game", "train", panel.task_ids, panel.task_digests),
        TaskPanel("toy", "train", panel.task_ids, (task_digest("changed"), *panel.task_digests[1:])),
    ]
    assert len({panel.digest, *(other.digest for other in others)}) == 5


def test_equal_panels_have_one_digest_whatever_sequence_they_were_given(panel):
    again = TaskPanel("toy", "train", list(panel.task_ids), list(panel.task_digests))
    assert again == panel
    assert again.digest == panel.digest


def test_json_round_trip(panel):
    again = TaskPanel.from_json(panel.to_json())
    assert again == panel
    assert again.digest == panel.digest


def test_changed_json_is_refused(panel):
    data = json.loads(panel.to_json())
    data["task_ids"].reverse()
    with pytest.raises(ValueError, match="states the digest"):
        TaskPanel.from_json(json.dumps(data))
    with pytest.raises(ValueError, match="keys"):
        TaskPanel.from_json("[]")


def test_panel_refuses_repeated_ids_and_missing_digests():
    with pytest.raises(ValueError, match="'a' twice"):
        panel_of("a", "b", "a")
    with pytest.raises(ValueError, match="2 task ids and 1 digests"):
        TaskPanel("toy", "train", ("a", "b"), (task_digest("a"),))


def test_positions(panel):
    assert len(panel) == 4
    assert [panel.index_of(name) for name in panel.task_ids] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"no task 'z'.*'a', 'b', 'c'"):
        panel.index_of("z")


def test_options_name_a_task_without_touching_the_generator(panel):
    assert choose_index(panel, {"index": 2}, Untouched()) == 2
    assert choose_index(panel, {"index": np.int64(3)}, Untouched()) == 3
    assert choose_index(panel, {"task_id": "b"}, Untouched()) == 1


@pytest.mark.parametrize("options", [None, {}, {"other": 1}])
def test_without_a_choice_the_draw_is_uniform_and_seeded(panel, options):
    rng = np.random.default_rng(0)
    draws = [choose_index(panel, options, rng, allowed=("other",)) for _ in range(4000)]
    rng = np.random.default_rng(0)
    assert draws[:20] == [choose_index(panel, options, rng, allowed=("other",)) for _ in range(20)]
    # 1,000 expected each, standard deviation sqrt(4000 * 1/4 * 3/4) = 27: five of them on either side.
    assert all(abs(draws.count(i) - 1000) < 137 for i in range(4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index": 4}, "index=4 .*from 0 to 3"),
        ({"index": -1}, "index=-1"),
        ({"index": "1"}, "index='1'"),
        ({"index": True}, "index=True"),
        ({"index": 1.0}, "index=1.0"),
        ({"task_id": "z"}, "no task 'z'"),
        ({"task_id": ["a"]}, "no task"),
        ({"index": 0, "task_id": "a"}, "twice"),
        ({"indx": 0}, r"\['indx'\] are unknown; known here: \['index', 'task_id'\]"),
    ],
)
def test_wrong_options_are_named(panel, options, message):
    with pytest.raises(ValueError, match=message):
        choose_index(panel, options, Untouched())


def test_empty_panel_cannot_be_drawn_from():
    with pytest.raises(ValueError, match="holds no task"):
        choose_index(panel_of(), None, np.random.default_rng(0))
