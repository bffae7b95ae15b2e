# SPDX-License-Identifier: Apache-2.0
"""Buckets that a reshard makes for a job of another shape: megatron-core loads them there, goes on as from a checkpoint that any
shape loads, and cuts its own buckets alike."""
import importlib.util
import os
import sys
from pathlib import Path

import originals
import pytest

import shardwright

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))
KINDS = ("dp_reshardable", "fully_reshardable")
BUCKETS = ("--bucket-size", 3000)


@pytest.fixture(scope="module")
def original():
    """Runs a job of the original as the example does, and gives its losses by their steps."""
    spec = importlib.util.spec_from_file_location("megatron_gpt_demo", SOURCE / "examples/megatron_gpt/demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    return demo.trained


def saved_as(folder, name):
    return [word for kind in KINDS for word in ("--save", f"{kind}={folder}/{name}-{kind}")]


def buckets_of(path):
    """Name to shape of the tensors of buckets, and what objects say of their sizes."""
    with shardwright.open(path) as checkpoint:
        shapes = {name: checkpoint[name].shape for name in checkpoint if ".bucket_idx_" in name}
        sizes = {name: checkpoint.open_object(name).read() for name in checkpoint.object_names() if "per_bucket_numel" in name}
    return shapes, sizes


@pytest.mark.skipif(not originals.is_installed(), reason="megatron-core is not installed")
@pytest.mark.parametrize(("name", "model", "before", "after", "sizes"), [
    ("tp2-to-dp2", BUCKETS, (2, "--tp", 2), (2, "--tp", 1), {"tensor_parallel": 1, "data_parallel": 2}),
    ("tp2-to-pp2", BUCKETS, (2, "--tp", 2), (2, "--pp", 2), {"tensor_parallel": 1, "pipeline_parallel": 2}),
    ("ep2-to-ep1", ("--experts", 4), (2, "--ep", 2), (1, "--ep", 1), {"expert_parallel": 1}),
])
def test_megatron_goes_on_with_buckets_of_a_new_shape(tmp_path, original, name, model, before, after, sizes):
    original(*before, *model, "--steps", 2, *saved_as(tmp_path, name))
    bucket_size = BUCKETS[1] if model is BUCKETS else None
    for kind in KINDS:
        shardwright.reshard(tmp_path / f"{name}-{kind}", tmp_path / f"new-{kind}", **sizes,
                            **({"optimizer": kind, "map": {"bucket_size": bucket_size}} if kind == KINDS[0] else {}))
    found = original(*after, *model, "--load", tmp_path / "new-dp_reshardable", "--steps", 1, "--save",
                    f"dp_reshardable={tmp_path}/found")
    control = original(*after, *model, "--load", tmp_path / "new-fully_reshardable", "--steps", 1, "--save",
                      f"dp_reshardable={tmp_path}/control")
    assert found == control and list(found) == [2]
    assert buckets_of(tmp_path / "new-dp_reshardable") == buckets_of(tmp_path / "found") == buckets_of(tmp_path / "control")
