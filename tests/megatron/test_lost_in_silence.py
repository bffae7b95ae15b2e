# SPDX-License-Identifier: Apache-2.0
"""What megatron-core loses or mixes up without a word, shown with megatron-core itself, and what ours do."""
import logging

import pytest
import shardwright.torch.megatron as ours
import torch
import torch.distributed.checkpoint as dcp


def part(kinds, key, data, *offsets, **changed):
    return kinds.ShardedTensor.from_rank_offsets(key, data, *offsets, **changed)


def stored_names(path):
    return set(dcp.FileSystemReader(path).read_metadata().state_dict_metadata)


def test_a_key_that_is_new_is_lost_by_the_original_when_plans_are_cached(original, one_rank, tmp_path):
    """Ours: test_planners.py, test_a_key_that_is_new_is_not_lost_by_caching."""
    strategy = original.strategies.TorchDistSaveShardedStrategy("torch_dist", 1, thread_count=1, cached_metadata=True)

    def saved(number, *keys):
        path = tmp_path / str(number)
        path.mkdir()
        original.serialization.save({key: part(original.mapping, key, torch.ones(4)) for key in keys}, str(path), strategy)
        return stored_names(path)

    assert [saved(number, "a") for number in range(3)] == [{"a"}] * 3
    assert saved(3, "a", "b") == {"a"}


def test_a_save_that_fails_leaves_a_mixture_that_the_original_takes(original, one_rank, tmp_path):
    """Ours: a checkpoint is the old one or the new one whole (tests/crash/kill_test.cc)."""
    def state(number):
        return {"step": number, "w": part(original.mapping, "w", torch.full((4,), float(number)))}

    class Full(original.strategies.TorchDistSaveShardedStrategy):
        def save(self, sharded_state_dict, checkpoint_dir):
            raise OSError("no space left on device")

    options = ("torch_dist", 1)
    original.serialization.save(state(1), str(tmp_path), original.strategies.TorchDistSaveShardedStrategy(*options, thread_count=1))
    with pytest.raises(OSError, match="no space left"):
        original.serialization.save(state(2), str(tmp_path), Full(*options, thread_count=1))
    found = original.serialization.load(state(0), str(tmp_path))
    assert found["step"] == 2 and found["w"].tolist() == [1.0] * 4


@pytest.fixture
def halves(tmp_path):
    """A checkpoint of t, 0 to 63, in two halves."""
    leaves = [part(ours, "t", torch.arange(64.0)[32 * n:32 * n + 32], (0, n, 2)) for n in range(2)]
    dcp.save(ours.mcore_to_pyt_state_dict({"t": leaves}), checkpoint_id=tmp_path / "c", no_dist=True,
             planner=ours.MCoreSavePlanner(flatten_state_dict=False))
    return tmp_path / "c"


def local_plan(planner, leaf, metadata):
    planner.set_up_planner(ours.mcore_to_pyt_state_dict({"t": [leaf]}, is_loading=True), metadata, True)
    return planner.create_local_plan()


def test_holes_leave_what_was_there_in_the_original(original, halves):
    metadata = dcp.FileSystemReader(halves).read_metadata()
    del metadata.state_dict_metadata["t"].chunks[1]
    leaf = part(ours, "t", torch.full((64,), -1.0))
    assert [item.lengths for item in local_plan(original.strategies.MCoreLoadPlanner(), leaf, metadata).items] == [torch.Size([32])]
    with pytest.raises(ValueError, match="32 of (the )?64 elements of t"):
        local_plan(ours.MCoreLoadPlanner(), leaf, metadata)


def test_casts_are_silent_in_the_original_and_told_by_ours(original, halves, caplog):
    def loaded(planner):
        leaf = part(ours, "t", torch.zeros(64, dtype=torch.int32))
        request = ours.mcore_to_pyt_state_dict({"t": [leaf]}, is_loading=True)
        dcp.load(request, checkpoint_id=halves, planner=planner, no_dist=True)
        return leaf.data.tolist()

    assert loaded(original.strategies.MCoreLoadPlanner()) == list(range(64))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    planner = ours.MCoreLoadPlanner()
    assert loaded(planner) == list(range(64))
    assert planner.casts == {"t": (torch.float32, torch.int32)}
    assert "1 tensors are cast while they are loaded: t" in caplog.text


def test_whole_grids_are_checked_on_one_rank_only_by_the_original(original, monkeypatch):
    """Ours on two ranks: rank_cases.py, a_broken_grid_is_refused_on_all_ranks."""
    monkeypatch.setattr(torch.distributed, "get_rank", lambda *_: 1)
    broken = part(original.mapping, "w", torch.ones(2), (0, 0, 3)).without_data()
    original.validation.validate_sharding_integrity([[broken]])
    with pytest.raises(ours.CheckpointingException, match="w"):
        ours.validate_sharding_integrity([[broken]])
