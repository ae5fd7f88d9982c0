"""What tests of several packages share."""

from __future__ import annotations

import importlib.util
import os

import pytest


def installed(*modules: str) -> bool:
    """Whether all these modules can be imported."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


def need(present: bool, component: str, how_to_get: str) -> None:
    """Go on only where ``component`` is there: else skip, or fail where ``CI`` is "true".

    On a user's machine a missing optional component is no fault; where all of them are promised it is.
    """
    if present:
        return
    reason = f"needs {component}: {how_to_get}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (CI=true: every component must be there)", pytrace=False)
    pytest.skip(reason)
