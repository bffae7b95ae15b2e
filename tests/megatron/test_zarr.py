# SPDX-License-Identifier: Apache-2.0
"""Directories of Megatron-core's zarr backend (up to 0.14), converted: what a later megatron-core loads is what was saved."""
import hashlib
import json
import shutil
import struct
from pathlib import Path

import pytest
import shardwright
import torch

pytestmark = pytest.mark.filterwarnings("ignore")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "megatron_zarr" / "mc10_tp2_w2"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


def sha256(tensor):
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()


def encoded(value):
    """A value as expected.json says it."""
    if isinstance(value, torch.Tensor):
        return {"type": "tensor", "dtype": str(value.dtype).replace("torch.", ""), "shape": list(value.shape), "sha256": sha256(value),
                "requires_grad": False, "parameter": False}
    if isinstance(value, dict):
        return {"type": "dict", "items": [[encoded(key), encoded(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"type": type(value).__name__, "items": [encoded(item) for item in value]}
    if isinstance(value, float):
        return {"type": "float", "value": repr(value), "bits": struct.pack(">d", value).hex()}
    return {"type": "none"} if value is None else {"type": type(value).__name__, "value": value}


def without_order(value):
    """Dicts by their keys, and tuples as lists: objects of plain values are stored as JSON."""
    if isinstance(value, dict) and value.get("type") == "dict":
        return {"type": "dict", "items": sorted(([key, without_order(item)] for key, item in value["items"]), key=str)}
    if isinstance(value, dict) and value.get("type") in ("list", "tuple"):
        return {"type": "list", "items": [without_order(item) for item in value["items"]]}
    return value


def request(kinds):
    """Of one rank, for everything that two ranks saved: tensors whole, objects by their places."""
    tree = {}
    for key, tensor in EXPECTED["tensors"].items():
        if not key.startswith("common."):
            empty = torch.empty(tensor["shape"], dtype=getattr(torch, tensor["dtype"]))
            tree[key] = kinds.ShardedTensor.from_rank_offsets(key, empty)
    for name in EXPECTED["objects"]:
        key, offsets, shape = name.replace("/shard_", "_").rsplit("_", 2)
        numbers = [tuple(map(int, text.split("."))) for text in (shape, offsets)]
        tree[name] = kinds.ShardedObject(key, None, *numbers)
    return tree


def test_megatron_loads_what_was_converted(original, one_rank, tmp_path):
    report = shardwright.convert(GOLDEN / "ckpt", tmp_path / "c", format="megatron")
    assert report.format == "megatron"
    loaded = original.serialization.load(request(original.mapping), str(tmp_path / "c"))
    for key, tensor in EXPECTED["tensors"].items():
        if not key.startswith("common."):
            assert sha256(loaded.pop(key)) == tensor["sha256"], key
    for name, value in EXPECTED["objects"].items():
        assert without_order(encoded([loaded.pop(name)])) == without_order(value), name
    assert without_order(encoded(loaded)) == without_order(EXPECTED["common"])


def test_it_is_not_opened():
    with pytest.raises(shardwright.UnimplementedError, match="zarr") as failure:
        shardwright.open(GOLDEN / "ckpt")
    assert "convert" in failure.value.details["hint"]


def test_compressed_arrays_are_named(tmp_path):
    shutil.copytree(GOLDEN / "ckpt", tmp_path / "c")
    header = tmp_path / "c" / "counts" / ".zarray"
    header.write_text(json.dumps(json.loads(header.read_text()) | {"compressor": {"id": "blosc", "cname": "lz4"}}))
    with pytest.raises(shardwright.UnimplementedError, match="counts.*blosc"):
        shardwright.convert(tmp_path / "c", tmp_path / "made", format="native")
