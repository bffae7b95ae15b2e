# SPDX-License-Identifier: Apache-2.0
"""The plugin's collective over NCCL, on as many ranks as there are GPUs."""
import importlib.util

import pytest
import ranks

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")


def test_the_collective_runs_over_nccl(tmp_path):
    import torch
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    size = min(torch.cuda.device_count(), 4)
    outcomes, errors = ranks.launch(size, tmp_path, seconds=300, program="nccl_rank.py")
    assert errors == []
    assert outcomes["nccl"] == ["c10d"] * size
