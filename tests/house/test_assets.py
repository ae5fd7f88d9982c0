"""What ships is what was released: checksums of the assets, and of the generated catalogue's raw content."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from bpo_envs.assets import asset


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def meta() -> dict:
    return json.loads(asset("webshop", "v1", "meta.json").read_text())


def test_checksums_cover_every_asset_and_hold():
    folder = asset("SHA256SUMS").parent
    stated = {
        name: digest
        for digest, name in (
            line.split(maxsplit=1) for line in (folder / "SHA256SUMS").read_text().splitlines()
        )
    }
    shipped = {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS" and "__pycache__" not in path.parts
    }
    assert shipped == stated, "after a change of the assets: make sums"


def test_the_catalogue_is_the_one_that_its_meta_describes(meta):
    # Compressed bytes depend on the compressor, so the content is compared.
    content = {
        name: sha256(gzip.decompress(asset("webshop", "v1", f"{name}.gz").read_bytes()))
        for name in meta["raw_sha256"]
    }
    assert content == meta["raw_sha256"]


def test_the_generator_is_the_one_that_wrote_the_catalogue(meta):
    assert sha256(asset("webshop", "v1", meta["generator"]).read_bytes()) == meta["generator_sha256"]


def test_a_missing_asset_is_named():
    with pytest.raises(FileNotFoundError, match=r"no shipped file 'webshop/nothing'.*reinstall"):
        asset("webshop", "nothing")
