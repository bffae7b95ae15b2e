# SPDX-License-Identifier: Apache-2.0
"""What torch's public tests of DCP ask for in one process and no other file has: faults of storages, ids of places."""
import pytest
import torch
import torch.distributed.checkpoint as theirs

import shardwright
import shardwright.torch.dcp as dcp

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing checkpoint",
                                        "ignore:torch.distributed is unavailable")
SAVE_HOOKS = ("set_up_storage_writer", "prepare_local_plan", "prepare_global_plan", "write_data", "finish")
LOAD_HOOKS = ("read_metadata", "set_up_storage_reader", "prepare_local_plan", "prepare_global_plan", "read_data")


def failing(kind, hook):
    def fail(self, *arguments, **keywords):
        raise OSError(f"no {hook} today")

    return type("Failing", (kind,), {hook: fail})


def expect_fault(call, hook):
    with pytest.raises(theirs.CheckpointException, match=f"no {hook} today") as caught:
        call()
    assert list(caught.value.failures) == [0] and isinstance(caught.value, shardwright.ShardwrightError)


@pytest.mark.parametrize("no_dist", [True, False])
@pytest.mark.parametrize("package", [dcp, theirs], ids=["ours", "torch"])
def test_a_failing_hook_of_a_storage_fails_saves_and_loads_of_one_process(package, no_dist, tmp_path):
    state = {"w": torch.ones(3), "n": 1}
    for hook in SAVE_HOOKS:
        writer = failing(package.FileSystemWriter, hook)(tmp_path / hook)
        expect_fault(lambda writer=writer: dcp.save(state, storage_writer=writer, no_dist=no_dist), hook)
        assert not (tmp_path / hook / ".metadata").exists()
    dcp.save(state, checkpoint_id=tmp_path / "whole", no_dist=no_dist)
    for hook in LOAD_HOOKS:
        reader = failing(package.FileSystemReader, hook)(tmp_path / "whole")
        target = {"w": torch.zeros(3), "n": 0}
        expect_fault(lambda reader=reader, target=target: dcp.load(target, storage_reader=reader, no_dist=no_dist), hook)
        assert not target["w"].any() and target["n"] == 0


@pytest.mark.parametrize("save", [dcp.save, theirs.save], ids=["ours", "torch"])
def test_saves_and_loads_of_a_place_have_ids(save, tmp_path):
    """Of the place, of each save, and of each load."""
    found = []
    for _ in range(2):
        save({"w": torch.ones(3)}, storage_writer=dcp.FileSystemWriter(tmp_path))
        for _ in range(2):
            meta = dcp.FileSystemReader(tmp_path).read_metadata().storage_meta
            assert str(meta.checkpoint_id) == str(tmp_path)
            found.append((meta.save_id, meta.load_id))
    saves, loads = zip(*found, strict=True)
    assert all(saves) and saves[0] == saves[1] != saves[2] == saves[3]
    assert all(loads) and len(set(loads)) == 4
