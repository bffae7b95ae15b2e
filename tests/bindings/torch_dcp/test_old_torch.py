# SPDX-License-Identifier: Apache-2.0
"""The oldest torch whose readers are promised reads what is written here: set SHW_OLD_TORCH to a Python that has torch 2.4
(`python3.11 -m venv old && old/bin/pip install torch==2.4.1 'numpy<2'`)."""
import os
import subprocess

import pytest
import torch
from torch.distributed.checkpoint.state_dict import get_state_dict

import shardwright.torch
import shardwright.torch.dcp

OLD_PYTHON = os.environ.get("SHW_OLD_TORCH")
pytestmark = pytest.mark.skipif(not OLD_PYTHON, reason="SHW_OLD_TORCH names no Python with torch 2.4")
SECONDS = 300
READER = """
import sys, torch, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
folder, expected = sys.argv[1], torch.load(sys.argv[2], weights_only=False)
assert torch.__version__.startswith("2.4."), torch.__version__

def flat(value, name=""):
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if entries is None:
        return {name: value}
    return {n: leaf for key, part in entries for n, leaf in flat(part, f"{name}.{key}" if name else str(key)).items()}

def check(found, wanted):
    assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype and torch.equal(found[name], value), name
        else:
            assert found[name] == value, name

dcp_to_torch_save(folder, folder + ".pt")
check(flat(torch.load(folder + ".pt", weights_only=False)), flat(expected))
weights = expected["model"]
target = {"model": {name: torch.zeros_like(value) for name, value in weights.items()}}
dcp.load(target, checkpoint_id=folder)
check(flat(target["model"]), weights)
"""


def trained():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(13, 37), torch.nn.ReLU(), torch.nn.Linear(37, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 13)).sum().backward()
    optimizer.step()
    weights, states = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": states, "step": 1, "name": "run", "half": torch.randn(4, 5).bfloat16(),
            "scalar": torch.tensor(2.5), "empty": torch.empty(0, 3), "nested": {"list": [1, 2.5, torch.arange(6)]}}


def save_native_call(state, path):
    shardwright.torch.save(state, path, format="torch_dcp")


def save_alias(state, path):
    shardwright.torch.dcp.save(state, checkpoint_id=path, no_dist=True)


@pytest.mark.parametrize("save", [save_native_call, save_alias])
def test_torch_2_4_converts_and_loads_it(save, tmp_path):
    state = trained()
    save(state, tmp_path / "checkpoint")
    torch.save(state, tmp_path / "expected.pt")
    done = subprocess.run([OLD_PYTHON, "-c", READER, str(tmp_path / "checkpoint"), str(tmp_path / "expected.pt")],
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
