# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that torch 2.1, 2.4 and 2.15 wrote, and broken ones: all that torch loads of them is loaded the same, what is
broken or hostile is an error of both kinds and runs nothing."""
import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint.state_dict_loader as original
from torch.distributed.checkpoint.api import CheckpointException

import shardwright
import shardwright.torch.dcp as dcp

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[3]))
CASES = sorted(path.parent for path in (SOURCE / "tests" / "golden" / "torch_dcp").glob("*/expected.json"))
GOOD = [case for case in CASES if not case.name.startswith("bad")]
BAD = [case for case in CASES if case.name.startswith("bad")]
# Of Python 3.13 and its paths; of a package that need not be here; of ranks by themselves, of which torch reads one.
NOT_OF_TORCH = {"dcp_v313_sharded_w2", "dcp_zstd_w2", "dcp_rank_local_w2"}
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")


def place_of(case):
    return case / json.loads((case / "expected.json").read_text())["path"]


def same(a, b, where=""):
    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape, where
        bits = [value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1) for value in (a, b)]
        assert a.numel() == 0 or torch.equal(*(value.view(torch.uint8) for value in bits)), where
    elif isinstance(a, dict):
        assert set(a) == set(b), where
        for key in a:
            same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, pair in enumerate(zip(a, b, strict=True)):
            same(*pair, f"{where}[{i}]")
    else:
        assert type(a) is type(b) and (a == b or a != a), where


def loaded(function, case):
    return function(checkpoint_id=place_of(case))


@pytest.mark.parametrize("case", [case for case in GOOD if case.name not in NOT_OF_TORCH], ids=lambda case: case.name)
def test_what_torch_loads_is_loaded_the_same(case):
    assert len(GOOD) > 10
    same(loaded(original._load_state_dict_from_keys, case), loaded(dcp.state_dict_loader._load_state_dict_from_keys, case))


@pytest.mark.parametrize("case", [case for case in GOOD if case.name != "dcp_zstd_w2"], ids=lambda case: case.name)
def test_a_state_is_filled_from_every_version(case):
    with shardwright.open(place_of(case)) as checkpoint:
        wanted = {t.name: torch.zeros(t.shape, dtype=getattr(torch, t.dtype)) for t in checkpoint.tensors()
                  if hasattr(torch, t.dtype)}
        digests = checkpoint.digest("sha256")
    dcp.load(wanted, checkpoint_id=place_of(case))
    for name, value in wanted.items():
        bits = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert hashlib.sha256(bits).hexdigest() == digests[name]["digest"], name


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_what_is_broken_or_hostile_is_an_error_and_runs_nothing(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointException) as caught:
        loaded(dcp.state_dict_loader._load_state_dict_from_keys, case)
    assert isinstance(caught.value, shardwright.ShardwrightError) and list(caught.value.failures) == [0]
    assert list(tmp_path.iterdir()) == []
