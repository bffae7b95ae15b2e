# SPDX-License-Identifier: Apache-2.0
"""Paths that begin with msc://: through the package multi-storage-client, over a profile of the local disk."""
import importlib.util
import pathlib

import pytest
import shardwright.torch.megatron as ours
import torch
from shardwright.torch.megatron import _directory

HAS_PACKAGE = importlib.util.find_spec("multistorageclient") is not None


def state(fill):
    return {"rows": ours.ShardedTensor.from_rank_offsets("rows", torch.full((6,), fill)), "iteration": 3,
            "w": ours.ShardedTensor.from_rank_offsets("w", torch.full((2, 3), fill)),
            "o": ours.ShardedObject("o", {"a": 1} if fill else None, (1,), (0,))}


@pytest.mark.skipif(not HAS_PACKAGE, reason="multi-storage-client is not installed")
def test_checkpoints_lie_behind_a_profile(tmp_path, monkeypatch):
    config = tmp_path / "msc.yaml"
    config.write_text(f"profiles:\n  here:\n    storage_provider:\n      type: file\n      options:\n        base_path: {tmp_path}\n")
    monkeypatch.setenv("MSC_CONFIG", str(config))
    url = "msc://here/run/c"
    for number, place in enumerate((url, url, pathlib.PurePosixPath(url))):  # pathlib takes a slash away
        ours.save(state(1.0 + number), place, ours.TorchDistSaveShardedStrategy(), verify_integrity=True)
        assert (tmp_path / "run" / "c" / "metadata.json").exists() and ours.check_is_distributed_checkpoint(place)
        found, missing, unexpected = ours.load(state(0.0), place, strict="return_all", verify_integrity=True)
        assert (missing, unexpected) == (set(), set()) and found["o"] == {"a": 1} and found["iteration"] == 3
        assert torch.equal(found["rows"], torch.full((6,), 1.0 + number))
    pending = ours.save(state(5.0), url, async_sharded_save=True)
    assert not ours.check_is_distributed_checkpoint(url)
    pending.execute_sync()
    assert torch.equal(ours.load_plain_tensors(url)["w"], torch.full((2, 3), 5.0))
    assert ours.load_common_state_dict(url) == {"iteration": 3}
    with pytest.raises(ours.CheckpointingException, match="is not a distributed checkpoint"):
        ours.load(state(0.0), "msc://here/absent")
    with pytest.warns(UserWarning, match="Skipping removal"):
        ours.remove_sharded_tensors(url, "rows")
    local = tmp_path / "run" / "hinted"
    local.mkdir()
    ours.save(state(1.0), local, ours.TorchDistSaveShardedStrategy(separation_hint="rows"), verify_integrity=True)
    ours.remove_sharded_tensors("msc://here/run/hinted", "rows")
    assert set(ours.load_tensors_metadata(local)) == {"w"} and not list(local.glob("rows*"))
    ours.verify_integrity_manifest(local)


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(_directory, "is_url", lambda path: False)
    for call in (lambda: ours.save(state(1.0), "msc://here/c"), lambda: ours.load(state(0.0), pathlib.PurePosixPath("msc://here/c")),
                 lambda: ours.load_tensors_metadata("msc://here/c"), lambda: ours._get_filesystem_reader("msc://here/c")):
        with pytest.raises(ours.CheckpointingException, match="pip install multi-storage-client"):
            call()
