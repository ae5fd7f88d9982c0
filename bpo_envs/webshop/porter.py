"""The original Porter stemmer, as Lucene's PorterStemFilter applies it.

A suffix is replaced only if enough of a word is left in front of it. That is the *measure* of the stem:
write the stem as [C](VC)^m[V], runs of consonants C and of vowels V, and m is its measure. The steps are
those of M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the two departures of
his own reference implementation (step 2: ``bli -> ble`` for ``abli -> able``, and ``logi -> log``). Libraries
differ in such details (on 40 of 18,490 words in one case), and each word stemmed otherwise moves results.
"""

from __future__ import annotations

import re

_STEP2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate",
    "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive",
    "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP4_ENDINGS = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"
_STEP4 = dict.fromkeys(_STEP4_ENDINGS.split(), "")
_VC = re.compile("v+c+")


def _shape(word: str) -> str:
    """``word`` with every letter replaced by v or c; y is a vowel only after a consonant."""
    kinds: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and kinds[-1:] == ["c"])
        kinds.append("v" if vowel else "c")
    return "".join(kinds)


def _measure(stem: str) -> int:
    return len(_VC.findall(_shape(stem)))


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _doubled(word: str) -> bool:
    """Ends in a double consonant."""
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short(word: str) -> bool:
    """Ends consonant, vowel, consonant, the last not w, x or y: such a stem lost an e ("hop" of "hoping")."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _replace(word: str, endings: dict[str, str], least: int) -> str:
    """Replace the longest matching ending where the stem's measure is at least ``least``."""
    for length in range(min(len(word), 7), 1, -1):
        ending = word[-length:]
        if ending in endings:
            stem = word[:-length]
            if ending == "ion" and not stem.endswith(("s", "t")):
                return word
            return stem + endings[ending] if _measure(stem) >= least else word
    return word


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            stem = word[: -len(ending)]
            return _repaired(stem) if _has_vowel(stem) else word
    return word


def _repaired(stem: str) -> str:
    """What step 1b does after it has cut -ed or -ing."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _doubled(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _short(stem) else stem


def _final_e(word: str) -> str:
    """Step 5."""
    if word.endswith("e"):
        stem = word[:-1]
        if _measure(stem) > 1 or (_measure(stem) == 1 and not _short(stem)):
            word = stem
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def stem(word: str) -> str:
    """Return the stem of a lower-case word; words of one or two letters stay as they are."""
    if len(word) < 3:
        return word
    word = _past(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, _STEP2, least=1)
    word = _replace(word, _STEP3, least=1)
    word = _replace(word, _STEP4, least=2)
    return _final_e(word)
