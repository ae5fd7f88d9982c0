"""Prompt formats: tokens at the seams of a conversation, appended and never rewritten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpo_train.policy import FormatOptions, make_format
from bpo_train.policy.format import ChatFormat, PlainFormat
from tiny_models import CHATML, LLAMA3, chat_tokenizer, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
CHAT = {"chatml": chat_tokenizer(CHATML), "llama3": chat_tokenizer(LLAMA3)}
NO_INFO = {"instruction": "", "admissible_actions": []}
TURNS = [("page one\n[buy]", "search red shoes"), ("second", "open 1"), (" odd  spaces ", "buy"), ("end", "")]
chat = pytest.mark.parametrize("kind", CHAT)


def plain(**options) -> PlainFormat:
    made = make_format(TOKENIZER, FormatOptions(**options))
    assert isinstance(made, PlainFormat)
    return made


def chatting(kind: str, **options) -> ChatFormat:
    made = make_format(CHAT[kind], FormatOptions(format="chat", **options))
    assert isinstance(made, ChatFormat)
    return made


def text_of(tokens: list[int], tokenizer=TOKENIZER) -> str:
    return tokenizer.decode(tokens)


# Plain


def test_plain_is_observation_mark_action_end():
    form = plain()
    tokens = [
        *form.start("task: shoes\n", NO_INFO),
        *form.action_tokens("search shoes"),
        *form.follow("results:\n", NO_INFO, cut=False),
    ]
    assert text_of(tokens) == "task: shoes\n> search shoes\nresults:\n>"


def test_plain_marks_are_configuration():
    form = plain(action_mark="ACT", action_end=";")
    assert text_of(form.start("see ", NO_INFO) + form.action_tokens("go")) == "see ACT go;"


def test_plain_gives_a_cut_action_its_end():
    form = plain()
    assert text_of(form.follow("seen", NO_INFO, cut=True)) == "\nseen>"
    assert text_of(form.follow("seen", NO_INFO, cut=False)) == "seen>"


def test_every_token_that_holds_the_end_ends_a_plain_action():
    tokenizer = tiny_tokenizer(("a\n\n",) * 50)  # "\n\n" becomes a token of its own
    form = make_format(tokenizer, FormatOptions())
    holding = {i for i in range(len(tokenizer)) if "\n" in tokenizer.decode([i])}
    assert form.stop_ids == holding
    assert len(holding) > 1


def test_a_plain_action_is_what_stands_before_its_end():
    form = plain()
    assert form.action_text(TOKENIZER.encode(" search  two words\n")) == "search  two words"
    assert form.action_text(TOKENIZER.encode(" buy")) == "buy"  # cut
    assert form.action_text(TOKENIZER.encode("\n")) == ""
    assert form.action_text(TOKENIZER.encode("buy\nmore")) == "buy"


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_given_actions_are_read_back(text):
    form = plain()
    assert form.action_text(form.action_tokens(text.strip())) == text.strip()


def test_a_plain_observation_keeps_its_head_up_to_the_cap():
    form = plain(max_observation_tokens=3)
    assert form.start("abcdef", NO_INFO) == [*TOKENIZER.encode("abcdef")[:3], *TOKENIZER.encode(">")]
    assert form.follow("abcdef", NO_INFO, cut=False) == form.start("abcdef", NO_INFO)


def test_plain_needs_an_end_that_a_token_holds():
    with pytest.raises(ValueError, match="`action_end` is empty"):
        plain(action_end="")
    with pytest.raises(ValueError, match="no token of this vocabulary holds '</action>'"):
        plain(action_end="</action>")


# Chat


def incremental(form: ChatFormat, cut: tuple[int, ...] = ()) -> list[int]:
    """The conversation of TURNS as the collector builds it; actions whose number is in `cut` have no end."""
    tokens: list[int] = []
    for number, (observation, action) in enumerate(TURNS):
        if number == 0:
            tokens += form.start(observation, NO_INFO)
        else:
            tokens += form.follow(observation, NO_INFO, cut=number - 1 in cut)
        if number + 1 < len(TURNS):
            spoken = form.action_tokens(action)
            tokens += spoken[:-1] if number in cut else spoken
    return tokens


def at_once(kind: str, system: str) -> list[int]:
    """The same conversation, rendered by the template as a whole."""
    messages = [{"role": "system", "content": system}] if system else []
    for observation, action in TURNS:
        messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": action}]
    text = CHAT[kind].apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
    return CHAT[kind].encode(text, add_special_tokens=False)


@chat
@pytest.mark.parametrize("system", ["", "You shop."])
def test_turn_by_turn_equals_the_whole_conversation_at_once(kind, system):
    assert incremental(chatting(kind, system=system)) == at_once(kind, system)


@chat
def test_cut_actions_are_ended_by_the_format(kind):
    assert incremental(chatting(kind), cut=(0, 2)) == at_once(kind, "")


@chat
def test_a_chat_action_ends_with_the_end_of_turn_token(kind):
    form = chatting(kind)
    assert form.stop_ids == {CHAT[kind].eos_token_id}
    assert form.action_tokens("buy")[-1] in form.stop_ids
    assert form.action_text(form.action_tokens(" buy now ")) == "buy now"


@chat
def test_a_chat_observation_keeps_its_head_up_to_the_cap(kind):
    form = chatting(kind, max_observation_tokens=2)
    head = CHAT[kind].decode(CHAT[kind].encode("abcdef")[:2])
    assert form.start("abcdef", NO_INFO) == chatting(kind).start(head, NO_INFO)


def test_chat_needs_a_template():
    with pytest.raises(ValueError, match="no chat template"):
        make_format(TOKENIZER, FormatOptions(format="chat"))


def test_chat_needs_an_end_of_turn_token():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHATML
    with pytest.raises(ValueError, match="names no end-of-turn"):
        make_format(tokenizer, FormatOptions(format="chat"))


def test_the_templates_end_of_turn_must_be_the_tokenizers():
    tokenizer = chat_tokenizer(CHATML)
    tokenizer.eos_token = "<|eot|>"  # as in base models: turns end with another token than texts
    with pytest.raises(ValueError, match=r"does not end an assistant turn with '<\|eot\|>'"):
        make_format(tokenizer, FormatOptions(format="chat"))


def test_a_template_that_rewrites_earlier_turns_is_refused():
    tokenizer = chat_tokenizer(CHATML)
    tokenizer.chat_template = "{{ messages | length }}" + CHATML
    form = make_format(tokenizer, FormatOptions(format="chat"))
    with pytest.raises(ValueError, match="rewrites earlier turns"):
        form.follow("seen", NO_INFO, cut=False)


# Templates


INFO = {"instruction": "buy {shoes}", "admissible_actions": ["search", "open 1"]}


@pytest.mark.parametrize("form", [plain, lambda **o: chatting("chatml", **o)], ids=["plain", "chat"])
def test_templates_are_filled_from_observation_and_info(form):
    made = form(
        first_template="{instruction}: {observation} [{admissible_actions}]",
        later_template="now {observation}",
    )
    bare = form()
    assert made.start("page", INFO) == bare.start("buy {shoes}: page [search\nopen 1]", INFO)
    assert made.follow("page", INFO, cut=False) == bare.follow("now page", INFO, cut=False)


def test_braces_in_an_observation_are_text():
    assert text_of(plain().start('{"price": 3} {instruction}', INFO)) == '{"price": 3} {instruction}>'


@pytest.mark.parametrize("template", ["{task}", "{observation.size}", "{}"])
@pytest.mark.parametrize("which", ["first_template", "later_template"])
def test_unknown_fields_are_refused_before_anything_is_shown(template, which):
    with pytest.raises(ValueError, match=r"unknown field|positional"):
        make_format(TOKENIZER, replace(FormatOptions(), **{which: template}))


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="unknown prompt format 'xml'; expected 'plain' or 'chat'"):
        make_format(TOKENIZER, FormatOptions(format="xml"))
