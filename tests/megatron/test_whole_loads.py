# SPDX-License-Identifier: Apache-2.0
"""Requests that the library fills by itself: what is read is verified, and shards of one tensor are filled where they lie."""
import re
import shutil
import struct

import pytest
import shardwright
import shardwright.torch.megatron as ours
import torch
from shardwright._library import native
from shardwright.torch.megatron.conversion import mcore_to_pyt_state_dict
from shardwright.torch.megatron.strategies._described import ShardedState, ShardLeaves

LAYERS = 3


def layers(fill=None, **options):
    """A key of which this rank holds several shards, one for each layer of a prepended axis, and a plain tensor."""
    def data(layer):
        return torch.full((4, 2), float(layer) if fill is None else fill)

    found = {f"layer{i}": ours.ShardedTensor.from_rank_offsets("layers.w", data(i), (0, i, LAYERS), prepend_axis_num=1)
             for i in range(LAYERS)}
    return found | {"plain": ours.ShardedTensor.from_rank_offsets("plain", data(7), **options)}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "c"
    made.mkdir()
    ours.save(layers(), made)
    return made


def test_shards_of_one_tensor_are_one_entry_over_their_own_memory(folder):
    tree = layers()
    shards = [tree[f"layer{i}"] for i in range(LAYERS)]
    values = mcore_to_pyt_state_dict({"layers.w": shards})
    leaves = ShardLeaves(None, False, True)
    assert [shard.local.data_ptr() for shard in leaves.shards("layers.w", values["layers.w"])] == [s.data.data_ptr() for s in shards]
    boxes = ShardedState(values, leaves, 0).boxes()
    assert boxes == {"layers.w": ((LAYERS, 4, 2), [((i, 0, 0), (1, 4, 2)) for i in range(LAYERS)])}
    with shardwright.open(folder) as checkpoint:
        assert checkpoint["layers.w"].shape == (LAYERS, 4, 2)


def test_tensors_of_a_request_are_filled_where_they_lie(folder):
    request = layers(-1.0)
    loaded = ours.load(request, folder)
    for i in range(LAYERS):
        assert loaded[f"layer{i}"].data_ptr() == request[f"layer{i}"].data.data_ptr()
        assert bool((request[f"layer{i}"].data == i).all())


def test_no_planner_is_asked(folder, monkeypatch):
    def fail(*_):
        raise AssertionError("the library plans by itself")

    monkeypatch.setattr(ours.MCoreLoadPlanner, "create_local_plan", fail)
    assert bool((ours.load(layers(-1.0), folder)["layer2"] == 2).all())


def test_a_flipped_byte_of_a_tensor_is_found(folder):
    data = next(path for path in folder.glob("*.distcp") if torch.full((8,), 2.0).numpy().tobytes() in path.read_bytes())
    whole = bytearray(data.read_bytes())
    whole[whole.index(torch.full((8,), 2.0).numpy().tobytes()) + 5] ^= 1
    data.write_bytes(whole)
    with pytest.raises(shardwright.DataLossError, match=data.name):
        ours.load(layers(-1.0), folder)


def test_shapes_that_may_differ_are_cropped_and_padded(folder):
    request = {"plain": ours.ShardedTensor.from_rank_offsets("plain", torch.full((6, 1), -1.0), allow_shape_mismatch=True)}
    assert ours.load(request, folder)["plain"].tolist() == [[7.0]] * 4 + [[0.0]] * 2
    with pytest.raises(ours.CheckpointingException, match="Global shape mismatch"):
        ours.load({"plain": ours.ShardedTensor.from_rank_offsets("plain", torch.zeros(6, 1))}, folder)
    with pytest.raises(ours.CheckpointingException, match="has 2 dimensions where it is stored and 1"):
        ours.load({"plain": ours.ShardedTensor.from_rank_offsets("plain", torch.zeros(6), allow_shape_mismatch=True)}, folder)


def published_up_to_the_journal(folder):
    """A checkpoint of another program that was killed right behind its commit, over the one that is there."""
    after = folder.parent / "after"
    shutil.copytree(folder, after)
    shardwright.save({"plain": torch.full((4, 2), 9.0), "common": {"iteration": 5}}, after, format="megatron", overwrite="replace")
    (data,) = (path for path in after.glob("*.distcp") if not (folder / path.name).exists())
    generation = re.search("[0-9a-f]{32}", data.name).group()
    shutil.copy(data, folder)
    journal = b"SHWPUBL1" + generation.encode() + struct.pack("<QQ", 1 | 4, 0o644)
    for name in (".metadata", "common.pt"):
        content = (after / name).read_bytes()
        (folder / f"{name}.{generation}").write_bytes(content)
        journal += struct.pack("<Q", len(content)) + digest(content)
    journal += struct.pack("<Q", 0) + bytes(16)
    (folder / ".shardwright.publish").write_bytes(journal + digest(journal))


def digest(content):
    return native.shw_content_digest(content)[0]


def test_what_a_killed_save_committed_is_put_in_place_first(folder):
    published_up_to_the_journal(folder)
    request = {"plain": ours.ShardedTensor.from_rank_offsets("plain", torch.zeros(4, 2))}
    found = ours.load(request, folder)
    assert found["iteration"] == 5 and bool((found["plain"] == 9).all())
    assert not (folder / ".shardwright.publish").exists()


def test_metadata_is_read_when_somebody_looks_at_it(folder):
    strategy = ours.TorchDistLoadShardedStrategy()
    strategy.load(layers(-1.0), folder)
    assert set(strategy.cached_global_metadata.state_dict_metadata) == {"layers.w", "plain"}
