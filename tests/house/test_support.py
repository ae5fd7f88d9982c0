"""A missing component skips on a user's machine and fails in continuous integration."""

from __future__ import annotations

import pytest

from support import need


def test_present_component_passes(monkeypatch):
    monkeypatch.setenv("CI", "true")
    need(True, "make", "apt install make")


def test_missing_component_skips_with_the_remedy(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs spaCy: pip install spacy"):
        need(False, "spaCy", "pip install spacy")


def test_missing_component_fails_in_ci(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs spaCy: pip install spacy"):
        need(False, "spaCy", "pip install spacy")
