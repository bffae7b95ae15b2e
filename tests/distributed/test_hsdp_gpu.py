# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.fully_shard on GPUs: one rank and as many as there are GPUs over NCCL, and two on one GPU over Gloo. What needs
none is in hsdp_device_cases.py."""
import importlib.util

import pytest
import ranks
import shardwright

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")


@pytest.fixture
def gpus():
    import torch
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    if not any(each["name"] == "cuda" for each in shardwright.context.shared().plugins()):
        pytest.skip("there is no libshardwright_cuda.so in this build")
    return torch.cuda.device_count()


def train(size, backend, folder):
    outcomes, errors = ranks.launch(size, folder, backend, seconds=600, program="hsdp_gpu_rank.py")
    bad = {case: found for case, found in outcomes.items() if found != ["ok"] * size}
    assert outcomes and not bad and errors == [], "\n".join([*(text for found in bad.values() for text in found), *errors])


def test_one_rank_over_nccl(tmp_path, gpus):
    train(1, "nccl", tmp_path)


def test_two_ranks_on_one_gpu_over_gloo(tmp_path, gpus):
    train(2, "gloo", tmp_path)


def test_a_rank_on_each_gpu_over_nccl(tmp_path, gpus):
    if gpus < 2:
        pytest.skip("there is no GPU for a second rank")
    train(min(gpus, 4), "nccl", tmp_path)
