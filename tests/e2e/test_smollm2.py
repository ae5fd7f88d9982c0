"""A real instruct model walks the whole line: SmolLM2-135M, its chat template, WebShop, one BPO update."""

from __future__ import annotations

import importlib.util
import json
import shlex

import pytest
import torch
from safetensors.torch import load_file

from bpo_train.__main__ import main
from bpo_train.policy.smollm2 import smollm2_folder
from support import need

pytestmark = pytest.mark.full

SHORT = """
    --model smollm2 --env bpo_envs:bpo/WebShop-v0 --env-wrappers wordy:WordyReward --max-episode-steps 2
    --format chat --max-observation-tokens 128 --max-new-tokens 12 --context-limit 768
    --first-template "{observation} Actions: {admissible_actions}" --later-template {observation}
    --prompts 2 --updates 1 --branch-points 1 --siblings 2 --spacing 1 --layout tree --learning-rate 1e-4
    --normalise tokens --minibatches 1 --warmup 0 --eval-tasks 0 --threads 1
"""


@pytest.fixture(scope="module")
def folder():
    need(importlib.util.find_spec("gguf") is not None, "gguf", "pip install 'bpo-envs[smollm2]'")
    try:
        return smollm2_folder()
    except ValueError as error:
        return need(False, "smollm2", str(error))


def run(output, *options: str) -> dict:
    assert main([*shlex.split(SHORT), "--output", str(output), *options]) == 0
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["parameters"] >= 134_515_008
    (record,) = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    assert record["returns"] == 4
    assert record["degenerate_points"] == 0
    assert record["grad_norm"] > 0
    # the engine generates with a cache, token by token; the learner sees a whole tree at once
    assert record["mismatch"] < 1e-3
    return record


def test_one_update_changes_the_weights(folder, tmp_path):
    run(tmp_path / "run", "--kl-weight", "0")
    before = load_file(folder / "model.safetensors")
    after = load_file(tmp_path / "run" / "checkpoint" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = [name for name, tensor in after.items() if not torch.equal(tensor, before[name])]
    assert len(changed) > 200  # of 272; the embeddings among them


def test_one_update_of_an_adapter_with_a_reference(folder, tmp_path):
    need(importlib.util.find_spec("peft") is not None, "peft", "pip install 'bpo-envs[lora]'")
    record = run(tmp_path / "run", "--lora-rank", "8", "--kl-weight", "0.05")
    assert record["kl"] == 0  # the adapter had changed nothing yet
    after = load_file(tmp_path / "run" / "checkpoint" / "adapter_model.safetensors")
    changed = [name for name, tensor in after.items() if "lora_B" in name and tensor.any()]
    assert len(changed) == 30 * 7  # layers, linear layers in each
