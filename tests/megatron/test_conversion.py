# SPDX-License-Identifier: Apache-2.0
"""From descriptors to what torch's checkpoint takes: boxes, data, errors, and inputs that stay as they were."""
import copy
import io

import pytest
import torch
from shardwright.torch import megatron as ours
from shardwright.torch.megatron.checkpointable import CheckpointableShardedTensor, LocalShardsContainer
from torch.distributed._shard.sharded_tensor import ShardedTensor as TorchShardedTensor
from torch.distributed.checkpoint.metadata import MetadataIndex


def boxes(value):
    """Offsets and sizes of the boxes that a value writes."""
    return [(tuple(item.tensor_data.chunk.offsets), tuple(item.tensor_data.chunk.sizes))
            for item in value.__create_write_items__("k", value)]


def converted(*leaves, **options):
    return ours.mcore_to_pyt_state_dict({"k": list(leaves)}, **options)["k"]


def layer(kinds, index, data=None, **changed):
    data = torch.arange(6.0).reshape(2, 3) if data is None else data
    return kinds.ShardedTensor.from_rank_offsets("k", data, (0, index, 2), prepend_axis_num=1, **changed)


def irregular(offset, data, shape, prepended=0, **changed):
    return ours.ShardedTensor("k", data, torch.float32, tuple(data.shape), shape, offset, None, 0, prepended, **changed)


def test_prepended_axes_are_one_element_wide(kinds):
    value = converted(layer(kinds, 1))
    assert value.size() == (2, 2, 3) and boxes(value) == [((1, 0, 0), (1, 2, 3))]
    assert value.__get_tensor_shard__(MetadataIndex("k", (1, 0, 0))).shape == (1, 2, 3)
    several = converted(layer(kinds, 0), layer(kinds, 1))
    assert isinstance(several, LocalShardsContainer) and boxes(several) == [((0, 0, 0), (1, 2, 3)), ((1, 0, 0), (1, 2, 3))]


def test_prepended_axes_with_an_irregular_grid_work_where_the_original_breaks(original):
    value = converted(irregular((1, 2), torch.ones(3), (2, 8), prepended=1))
    assert boxes(value) == [((1, 2), (1, 3))]
    theirs = original.mapping.ShardedTensor("k", torch.ones(3), torch.float32, (3,), (2, 8), (1, 2), None, 0, 1)
    wrapped = original.strategies.CheckpointableShardedTensor.from_sh_ten(theirs)
    (item,) = wrapped.__create_write_items__("k", wrapped)
    assert tuple(item.tensor_data.chunk.sizes) == (3,)


def test_only_local_boxes_are_described_however_large_the_grid():
    """48 layers x 128 experts in each of 1,000 x 1,000 parts: the original would list 6 * 10^9 shards."""
    data = torch.ones(2)
    leaf = ours.ShardedTensor.from_rank_offsets("k", data, (0, 3, 48), (1, 5, 128), (2, 7, 10**6), prepend_axis_num=2)
    assert boxes(converted(leaf)) == [((3, 5, 14), (1, 1, 2))]
    found = ours.sharded_tensor_to_torch_sharded_tensor([leaf])
    assert len(found.metadata().shards_metadata) == 1


def test_boxes_without_elements_are_not_written():
    whole = irregular((4,), torch.ones(3), (7,))
    empty = irregular((4,), torch.ones(0), (7,))
    value = converted(empty, whole)
    assert boxes(value) == [((4,), (3,))] and boxes(converted(empty)) == []
    assert value.__get_tensor_shard__(MetadataIndex("k", (4,), 0)).numel() == 3
    assert [tensor.numel() for tensor in ours._unwrap_pyt_sharded_tensor(value)] == [0, 3]


def test_scalars_have_one_box():
    value = converted(irregular((), torch.tensor(2.0), ()))
    assert boxes(value) == [((), ())] and value.__get_tensor_shard__(MetadataIndex("k", ())) == 2


def test_flattened_ranges_are_boxes_of_the_whole_tensor():
    flat = ours.ShardedTensor.from_rank_offsets_flat("k", torch.arange(4.0, 11), (4, 3), (1, 1, 2), flattened_range=slice(4, 11))
    value = converted(flat)
    assert boxes(value) == [((1, 4), (1, 2)), ((2, 3), (1, 3)), ((3, 3), (1, 2))]
    target = torch.full((4, 6), -1.0)
    for item in value.__create_write_items__("k", value):
        (row, column), (rows, columns) = item.tensor_data.chunk.offsets, item.tensor_data.chunk.sizes
        target[row:row + rows, column:column + columns] = value.__get_tensor_shard__(item.index)
    expected = torch.full((4, 3), -1.0).reshape(-1)
    expected[4:11] = torch.arange(4.0, 11)
    assert torch.equal(target[:, 3:], expected.reshape(4, 3)) and (target[:, :3] == -1).all()


def test_a_shard_that_is_asked_for_twice_is_read_once_and_copied():
    leaves = [layer(ours, 1, torch.zeros(2, 3)) for _ in range(2)]
    value = converted(*leaves, is_loading=True)
    assert len(value.__create_chunk_list__()) == 1 and len(boxes(value)) == 2
    value.__get_tensor_shard__(MetadataIndex("k", (1, 0, 0), 0)).fill_(5)
    assert all((tensor == 5).all() for tensor in ours._unwrap_pyt_sharded_tensor(value))


def test_the_place_of_a_box_is_found_by_hint_then_by_offset():
    short, long = irregular((0,), torch.ones(2), (8,)), irregular((0,), torch.ones(5), (8,))
    value = converted(short, long)
    assert [value.__get_tensor_shard__(MetadataIndex("k", (0,), hint)).numel() for hint in (0, 1, None)] == [2, 5, 2]
    with pytest.raises(ValueError, match="Could not find shard at"):
        value.__get_tensor_shard__(MetadataIndex("k", (3,)))
    with pytest.raises(ValueError, match="without an offset"):
        value.__get_tensor_shard__(MetadataIndex("k"))
    with pytest.raises(NotImplementedError):
        value + 1
    assert "ShardedTensor(key='k'" in repr(value)


def test_a_container_keeps_its_shards_as_the_original_does(original):
    leaves = [layer(ours, number) for number in range(2)]
    found = converted(*leaves)._local_shards
    assert [shard._sh_ten.global_offset for shard in found] == [leaf.global_offset for leaf in leaves]
    assert all(isinstance(shard, ours.CheckpointableShardedTensor) for shard in found)
    assert all(shard._sh_ten.data.data_ptr() == leaf.data.data_ptr() for shard, leaf in zip(found, leaves))
    wrapped = [ours.CheckpointableShardedTensor.from_sh_ten(leaf) for leaf in leaves]
    made = ours.LocalShardsContainer(wrapped)
    assert all(a is b for a, b in zip(made._local_shards, wrapped)) and made._local_shards is made._local_shards
    theirs = original.strategies.LocalShardsContainer(
        [original.strategies.CheckpointableShardedTensor.from_sh_ten(layer(original.mapping, number)) for number in range(2)])
    assert [shard._sh_ten.global_offset for shard in theirs._local_shards] == [leaf.global_offset for leaf in leaves]


def test_saving_needs_data_and_descriptors_that_hold():
    with pytest.raises(ours.CheckpointingException, match="`data` attr is None for"):
        converted(layer(ours, 0).without_data())
    beyond = irregular((5,), torch.ones(4), (8,))
    with pytest.raises(ours.CheckpointingException, match="ends at 9, beyond the global extent 8"):
        converted(beyond)
    with pytest.raises(AssertionError, match="a tensor and an object"):
        converted(layer(ours, 0), ours.ShardedObject("k", 1, (1,), (0,)))
    with pytest.raises(AssertionError, match="an object and something else"):
        converted(ours.ShardedObject("k", 1, (1,), (0,)), layer(ours, 0))


def test_loading_allocates_and_clears_as_the_request_says():
    padded = {"allow_shape_mismatch": True}
    given = torch.ones(2, 3)
    assert (ours._unwrap_pyt_sharded_tensor(converted(layer(ours, 0, given, **padded), is_loading=True))[0] == 0).all()
    assert (given == 0).all()  # the destination
    empty = layer(ours, 0, **padded).without_data()
    found = ours._unwrap_pyt_sharded_tensor(converted(empty, is_loading=True))[0]
    assert found.shape == (2, 3) and (found == 0).all() and empty.data is None
    kept = torch.ones(2, 3)
    assert ours._unwrap_pyt_sharded_tensor(converted(layer(ours, 0, kept), is_loading=True))[0].data_ptr() == kept.data_ptr()


def test_objects_are_one_stream_of_a_list(kinds):
    stream = converted(kinds.ShardedObject("k", 1, (2,), (0,)), kinds.ShardedObject("k", {"a": 2}, (2,), (0,)))
    stream.seek(0)
    assert torch.load(stream) == [1, {"a": 2}]
    with pytest.raises(Exception, match="pickle"):
        converted(kinds.ShardedObject("k", lambda: 1, (1,), (0,)))
    assert isinstance(converted(kinds.ShardedObject("k", lambda: 1, (1,), (0,)), is_loading=True), io.BytesIO)


def test_inputs_stay_as_they_were(kinds):
    strided = torch.arange(12.0).reshape(3, 4).t()[:3]
    leaf = layer(kinds, 1, strided)
    before, data = copy.copy(leaf), leaf.data
    value = converted(leaf)
    ours.sharded_tensor_to_torch_sharded_tensor([leaf])
    assert leaf.data is data and leaf == before and not leaf.data.is_contiguous() and leaf.data.shape == (3, 3)
    assert torch.equal(value.__get_tensor_shard__(MetadataIndex("k", (1, 0, 0)))[0], strided)


def test_the_original_changes_its_inputs_and_lists_the_whole_grid(original, one_rank):
    strided = torch.arange(12.0).reshape(3, 4).t()[:3]
    leaf = layer(original.mapping, 1, strided)
    with pytest.raises(RuntimeError, match=r"metadata in sharded_tensor_metadata \(2\)"):  # one rank cannot hold the grid
        original.strategies.sharded_tensor_to_torch_sharded_tensor([leaf], 0)
    assert leaf.data is not strided and leaf.data.shape == (1, 3, 3)


def test_torch_sharded_tensors_hold_the_local_shards(kinds):
    found = ours.sharded_tensor_to_torch_sharded_tensor([layer(kinds, 1), layer(kinds, 0)])
    assert isinstance(found, TorchShardedTensor) and found.size() == (2, 2, 3) and found.key == "k"
    assert [shard.metadata.shard_offsets for shard in found.local_shards()] == [[1, 0, 0], [0, 0, 0]]
    assert [tensor.shape for tensor in ours._unwrap_pyt_sharded_tensor(found)] == [(2, 3), (2, 3)]
    assert found.mcore_sh_ten.data is None and found.mcore_sh_ten.global_offset == (0, 0, 0)
    with pytest.raises(ours.CheckpointingException, match="no elements"):
        ours.sharded_tensor_to_torch_sharded_tensor([irregular((0,), torch.ones(0), (4,))])


def test_wrappers_of_the_original_are_unwrapped_too(original, one_rank):
    leaves = [original.mapping.ShardedTensor.from_rank_offsets("k", torch.ones(2), (0, r, 2)) for r in range(2)]
    for given in (leaves[:1], leaves):
        theirs = original.strategies.mcore_to_pyt_state_dict({"k": given})["k"]
        assert [t.shape for t in ours._unwrap_pyt_sharded_tensor(theirs)] == [(2,)] * len(given)
    whole = original.strategies.mcore_to_pyt_state_dict({"k": [layer(original.mapping, 0), layer(original.mapping, 1)]})["k"]
    assert [t.shape for t in ours._unwrap_pyt_sharded_tensor(whole)] == [(2, 3)] * 2
    assert ours._unwrap_pyt_sharded_tensor("other") == "other"


def test_wrappers_keep_the_descriptor_with_its_data():
    leaf = layer(ours, 0)
    value = CheckpointableShardedTensor.from_sh_ten(leaf)
    assert value._sh_ten == leaf and boxes(LocalShardsContainer([value])) == boxes(value)
