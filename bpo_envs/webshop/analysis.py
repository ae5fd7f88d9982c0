"""From text to index terms, as Anserini's DefaultEnglishAnalyzer does it.

Lucene's StandardTokenizer cuts the text into words, then a possessive 's is dropped, the word is lower-cased,
stop words go, and the Porter stemmer cuts endings. Search results match the original's only if every step
does: one token more in a document changes its length, and with it the order of the results.

The tokenizer follows Unicode's word boundary rules (UAX #29), plus emoji as words of their own. It works in
two moves: every character is replaced by one letter that says what kind it is to those rules, and a regular
expression over these letters finds the words. Kinds come from `unicodedata`, once per distinct character. A
few hundred rare characters (tone letters, some Armenian and Arabic signs) are classed only approximately.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from bpo_envs.webshop.porter import stem

MAX_TOKEN = 255  # characters; Lucene cuts longer words there

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such
that the their then there these they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Kinds of characters: L letter, H Hebrew letter, D digit, K katakana, J Han, I hiragana, S South-East Asian,
# P pictograph, M emoji skin tone, R flag letter, Z joiner, k keycap mark, X other marks and format
# characters; the signs . : , ' " _ # stand for themselves and their likes, - for everything else.
_LIKE = {
    ".": ".\u2018\u2019\u2024\ufe52\uff07\uff0e",  # joins letters, and joins digits
    ":": ":\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a",  # joins letters
    ",": ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b",  # joins digits
    "'": "'",
    '"': '"',
    "_": "\u202f",
    "#": "#*",
    "D": "\u066b",
    "L": "\u05f3",
    "K": "\u3031\u3032\u3033\u3034\u3035\u309b\u309c\u30a0\u30fc\uff70",
    "J": "\u3005\u3007\u303b",
    "X": "\u200c\uff9e\uff9f",
    "Z": "\u200d",
    "k": "\u20e3",
    "-": "\u200b",
}
# Extended_Pictographic of Unicode 14.
_PICTOGRAPHS = """
a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab
25b6 25c0 25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734
2744 2747 274c 274e 2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50
2b55 3030 303d 3297 3299 1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f 1f18e 1f191-1f19a
1f1ad-1f1e5 1f201-1f20f 1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f
1f680-1f6ff 1f774-1f77f 1f7d5-1f7ff 1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff
1f90c-1f93a 1f93c-1f945 1f947-1faff 1fc00-1fffd
"""
_PICTOGRAPH_BOUNDS = [  # where pictographs begin, end, begin again, ...
    bound
    for item in _PICTOGRAPHS.split()
    for bound in (int(item.split("-")[0], 16), int(item.split("-")[-1], 16) + 1)
]
# By the first words of a character's name, for scripts that `unicodedata` does not tell apart otherwise.
_SCRIPTS = (
    ("J", ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI", "HANGZHOU")),
    ("I", ("HIRAGANA",)),
    ("K", ("KATAKANA", "HALFWIDTH KATAKANA", "CIRCLED KATAKANA")),
    ("H", ("HEBREW",)),
    ("S", ("THAI", "LAO ", "MYANMAR", "KHMER", "TAI ", "NEW TAI", "AHOM")),
)
_SHAPES = ("CIRCLED", "NEGATIVE CIRCLED", "SQUARED", "NEGATIVE SQUARED")
_SYMBOLS_LIKE_LETTERS = (
    "CJK RADICAL",
    "KANGXI",
    "CIRCLED KATAKANA",
    *(f"{shape} LATIN" for shape in _SHAPES),
)


class _Kinds(dict[int, str]):
    """Kind of a code point, looked up once: what `str.translate` wants."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(code)
        return kind


def _kind(code: int) -> str:
    character = chr(code)
    category = unicodedata.category(character)
    if 0x1F3FB <= code <= 0x1F3FF:
        return "M"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "R"
    if category[0] == "M" or category == "Cf":
        return "X"
    if category == "Nd":
        return "D"
    if category == "Pc":
        return "_"
    name = unicodedata.name(character, "")
    if category[0] == "L" or category == "Nl" or name.startswith(_SYMBOLS_LIKE_LETTERS):
        return next((kind for kind, starts in _SCRIPTS if name.startswith(starts)), "L")
    return "P" if bisect_right(_PICTOGRAPH_BOUNDS, code) % 2 else "-"


_KINDS = _Kinds((ord(character), kind) for kind, characters in _LIKE.items() for character in characters)


def _word_pattern() -> re.Pattern[str]:
    """Words over kinds: rules WB4 to WB13b of UAX #29, then what Lucene adds (Han, hiragana, emoji, ...)."""
    mark = "[XZMk]"  # marks belong to the character before them, whatever it is (WB4)
    joint = "_[_XZMk]*"
    letters = f"[LH][LHXZMk]*(?:(?:{joint}|[.':]{mark}*)[LH][LHXZMk]*)*"
    digits = f"D[DXZMk]*(?:(?:{joint}|[.',]{mark}*)D[DXZMk]*)*"
    hebrew = f"(?<=H)(?:'{mark}*|\"{mark}*H{mark}*)"
    katakana = f"K[KXZMk]*(?:{joint}K[KXZMk]*)*"
    run = f"(?:{katakana}|(?:{letters}|{digits}|{hebrew})+)"
    word = f"(?:{joint})?{run}(?:{joint}{run})*(?:{joint})?"
    emoji = f"[PM](?:Z[PM]|{mark})*|R{mark}*R{mark}*|#[XZM]*k{mark}*"
    # Group 1 is no word: it takes a row of underscores in one go; trying each would be quadratic.
    return re.compile(f"{word}|({joint})|S[SXZMk]*|[JI]{mark}*|{emoji}")


_WORD = _word_pattern()


def _spans(kinds: str) -> Iterator[tuple[int, int]]:
    """Where the words are; one longer than `MAX_TOKEN` is scanned again in windows of that length."""
    for match in _WORD.finditer(kinds):
        if match.lastindex:
            continue
        start, end = match.span()
        while end - start > MAX_TOKEN:
            piece = _WORD.search(kinds, start, start + MAX_TOKEN)
            if piece is None:
                break
            if not piece.lastindex:
                yield piece.span()
            start = piece.end()
        else:
            yield start, end


@lru_cache(maxsize=1 << 16)
def _term(token: str) -> str | None:
    """The index term of a token, or None for a stop word."""
    if token[-1] in "sS" and token[-2:-1] in ("'", "\u2019", "\uff07"):
        token = token[:-2]
    if token.isascii():
        token = token.lower()
    else:  # Java lower-cases code point by code point: no final sigma, one character for İ
        token = "".join(character.lower()[0] for character in token)
    return None if token in STOP_WORDS else stem(token)


def analyze(text: str) -> list[str]:
    """Return the index terms of a text in order, repetitions included.

    Source: Anserini ``DefaultEnglishAnalyzer``, Lucene 9.5 ``StandardTokenizer``. For example
    ``analyze("The Mother's shoes, 4.5 oz")`` is ``["mother", "shoe", "4.5", "oz"]``.
    """
    kinds = text.translate(_KINDS)
    terms = (_term(text[start:end]) for start, end in _spans(kinds))
    return [term for term in terms if term is not None]
