"""Every sick animal is caught by the check that names its kind; no healthy one is accused of anything."""

from __future__ import annotations

import pytest

from wrappers import check_fidelity
from wrappers.fidelity import CHECKS
from zoo import healthy, sick_more, sick_state, sick_world
from zoo.keeper import examine

MODULES = (sick_state, sick_world, sick_more)
SICK = [
    pytest.param(animal, check, id=f"{check}: {animal.__name__}")
    for module in MODULES
    for check, animals in module.SICK.items()
    for animal in animals
]
HEALTHY = [pytest.param(make, id=make.__qualname__) for make in (*healthy.OURS, *healthy.GYMNASIUM)]
PORTABLE = [healthy.Orchard, healthy.tall_stack, healthy.FileTree, healthy.replayed]
TIDY = [
    healthy.BoundedHistory,
    healthy.FileTree,
    healthy.PureCache,
    healthy.ScratchFiles,
    healthy.tall_stack,
    *healthy.GYMNASIUM[:1],
]


def accusations(found: dict) -> dict:
    return {name: result["detail"] for name, result in found.items() if not result["passed"]}


def test_the_zoo_is_large_and_varied():
    assert len(SICK) >= 25 and len(HEALTHY) >= 12
    kinds = {name for module in MODULES for name in module.SICK}
    assert kinds == set(CHECKS) - {"cost"}  # nothing can be sick of its cost alone


@pytest.mark.parametrize(("animal", "check"), SICK)
def test_sick_animals_are_caught(animal, check):
    found = examine(animal, [check])[check]
    assert not found["passed"], found["detail"]
    assert found["detail"] and found["reproduce"]["code"]


@pytest.mark.parametrize("make", HEALTHY)
def test_healthy_animals_are_not_accused(make):
    names = [name for name in CHECKS if name not in ("portability", "leaks")]
    assert accusations(examine(make, names, hash_seeds=(), budget=0.03, least_cases=3)) == {}


@pytest.mark.parametrize("make", TIDY, ids=lambda make: make.__qualname__)
def test_healthy_animals_are_tidy(make):
    assert accusations(examine(make, ["leaks"], budget=0.05)) == {}


@pytest.mark.parametrize("make", PORTABLE, ids=lambda make: make.__name__)
def test_healthy_animals_go_elsewhere(make):
    found = examine(make, ["determinism", "portability"], hash_seeds=(1,))
    assert accusations(found) == {}
    assert not found["portability"]["skipped"]


@pytest.mark.full
@pytest.mark.parametrize(("animal", "check"), SICK)
def test_sick_animals_are_caught_by_the_whole_report(animal, check):
    report = check_fidelity(animal, quick=True, checks=[check])
    assert not report.passed, report


@pytest.mark.full
@pytest.mark.parametrize("make", HEALTHY)
def test_healthy_animals_pass_the_whole_report(make):
    report = check_fidelity(make, quick=True)
    assert report.passed, report


@pytest.mark.full
@pytest.mark.parametrize("make", [*PORTABLE, *TIDY, healthy.Gusty], ids=lambda make: make.__qualname__)
def test_healthy_animals_pass_the_long_report(make):
    report = check_fidelity(make)
    assert report.passed, report
