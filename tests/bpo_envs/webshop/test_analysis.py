"""Text analysis against Lucene's documented behaviour, Unicode's rules and Porter's paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpo_envs.webshop.analysis import MAX_TOKEN, STOP_WORDS, analyze
from bpo_envs.webshop.porter import stem

# The examples of Porter's 1980 paper, each taken through all steps.
PORTER = """
caresses caress  ponies poni  ties ti  caress caress  cats cat
feed feed  agreed agre  plastered plaster  bled bled  motoring motor  sing sing
conflated conflat  troubled troubl  sized size  hopping hop  tanned tan  falling fall
hissing hiss  fizzed fizz  failing fail  filing file  happy happi  sky sky
relational relat  conditional condit  rational ration  valency valenc  hesitancy hesit  digitizer digit
radically radic  differently differ  vilely vile  analogously analog  vietnamization vietnam
predication predic  operator oper  feudalism feudal  decisiveness decis  hopefulness hope  callousness callous
formality formal  sensitivity sensit  sensibility sensibl
triplicate triplic  formative form  formalize formal  electricity electr  electrical electr  hopeful hope
goodness good
revival reviv  allowance allow  inference infer  airliner airlin  gyroscopic gyroscop  adjustable adjust
defensible defens  irritant irrit  replacement replac  adjustment adjust  dependent depend  adoption adopt
homologous homolog  communism commun  activate activ  effective effect  bowdlerize bowdler
probate probat  rate rate  cease ceas  controlling control  roll roll
generalizations gener  oscillators oscil
"""
_WORDS = PORTER.split()


@pytest.mark.parametrize(("word", "expected"), list(zip(_WORDS[::2], _WORDS[1::2])))
def test_porter_stems_the_examples_of_the_paper(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("possibly", "possibl"),
        ("conformably", "conform"),
        ("archaeology", "archaeolog"),
        ("as", "as"),
        ("us", "us"),
    ],
)
def test_porter_follows_the_reference_implementation_where_it_departs_from_the_paper(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000.50 4.5oz 3/4", ["1,000.50", "4.5oz", "3", "4"]),  # WB11, WB12; WB9, WB10
        ("don't o.k. e.g.", ["don't", "o.k", "e.g"]),  # WB6, WB7
        ("A:B 1:2", ["a:b", "1", "2"]),  # the colon joins letters, not digits
        ("foo_bar _x_ ___", ["foo_bar", "_x_"]),  # WB13a, WB13b
        ('x-large 36"x24" #2 a*b', ["x", "larg", "36", "x24", "2", "b"]),
        ("cafe\u0301 soft\u00adware", ["cafe\u0301", "soft\u00adwar"]),  # WB4
        ("½ cup 20°c ² β", ["cup", "20", "c", "β"]),
        ("漢字かなカタカナ", ["漢", "字", "か", "な", "カタカナ"]),
        ("한국어 ภาษาไทย", ["한국어", "ภาษาไทย"]),
        ('שלום צה"ל', ["שלום", 'צה"ל']),  # WB7b, WB7c
        ("ⓐb ⑴", ["ⓐb"]),
    ],
)
def test_words_end_where_unicode_says(text, expected):
    assert analyze(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("★ soap ★", ["★", "soap", "★"]),
        ("Acme™ mat", ["acm", "™", "mat"]),
        ("❤️👍🏽", ["❤️", "👍🏽"]),
        ("👨‍👩‍👧x", ["👨‍👩‍👧", "x"]),
        ("🇫🇷🇩🇪", ["🇫🇷", "🇩🇪"]),
        ("1️⃣ #️⃣ # ☆", ["1️⃣", "#️⃣"]),
    ],
)
def test_pictographs_are_words_of_their_own(text, expected):
    assert analyze(text) == expected


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\uff07"])
def test_a_possessive_s_is_dropped(apostrophe):
    assert analyze(f"Mother{apostrophe}s WOMEN{apostrophe}S") == ["mother", "women"]


def test_stop_words_vanish_also_in_capitals():
    assert len(STOP_WORDS) == 33
    assert analyze(" ".join(STOP_WORDS) + " The THAT it's") == []


def test_a_word_longer_than_the_limit_is_cut_into_pieces():
    assert analyze("z" * 600) == ["z" * MAX_TOKEN, "z" * MAX_TOKEN, "z" * 90]


def test_letters_are_lower_cased_one_by_one():
    assert analyze("ΟΔΟΣ İX") == [
        "οδοσ",
        "ix",
    ]  # no final sigma and no combining dot: Java's per-character rule


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_line_break_always_ends_a_word(left, right):
    assert analyze(left + "\n" + right) == analyze(left) + analyze(right)


@given(st.text(max_size=200))
def test_any_text_is_analysed_and_no_term_is_blank(text):
    assert all(term and not term.isspace() for term in analyze(text))
