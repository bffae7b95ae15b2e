# SPDX-License-Identifier: Apache-2.0
"""Checkpoints with flattened entries, as Megatron up to 0.14 wrote them, loaded into any grid."""
import random

import pytest
import torch
import torch.distributed.checkpoint as dcp
from flat_entries import flat_entry
from shardwright.torch import megatron as ours

SHAPES = {"split": (4, 6), "whole": (4, 6), "line": (6,), "layers": (2, 2, 3)}


def values(key):
    count = 1
    for extent in SHAPES[key]:
        count *= extent
    return torch.arange(float(count)).reshape(SHAPES[key])


# key, fragments, position, local shape, range of what two ranks wrote
WRITTEN = [
    ("split", (1, 2), (0, 0), (4, 3), slice(0, 12)), ("split", (1, 2), (0, 1), (4, 3), slice(0, 12)),
    ("whole", (1, 1), (0, 0), (4, 6), slice(0, 10)), ("whole", (1, 1), (0, 0), (4, 6), slice(10, 24)),
    ("line", (1,), (0,), (6,), slice(0, 3)), ("line", (1,), (0,), (6,), slice(3, 6)),
    ("layers", (2, 1, 1), (0, 0, 0), (2, 3), slice(0, 6)), ("layers", (2, 1, 1), (1, 0, 0), (2, 3), slice(0, 6)),
]


class Reader(dcp.FileSystemReader):
    """Adds the attribute that such metadata has."""

    def read_metadata(self, *arguments, **options):
        found = super().read_metadata(*arguments, **options)
        found.mcore_data = {key: {"nd_reformulated_orig_global_shape": shape} for key, shape in SHAPES.items()} | {"other": {}}
        return found


def part_of(key, position, local, flat):
    """The elements of one stored shard."""
    whole = values(key)
    if len(position) > len(local):
        whole, position = whole[position[0]], position[1:]
    where = tuple(slice(p * n, (p + 1) * n) for p, n in zip(position, local))
    return whole[where].reshape(-1)[flat]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("flat") / "c"
    grouped = {"other": [ours.ShardedTensor.from_rank_offsets("other", torch.arange(3.0))]}
    for key, fragments, position, local, flat in WRITTEN:
        size, (offsets, sizes) = flat_entry(fragments, position, local, flat)
        data = part_of(key, position, local, flat).reshape(sizes)
        grouped.setdefault(key, []).append(ours.ShardedTensor(key, data, data.dtype, tuple(sizes), tuple(size), tuple(offsets), None))
    dcp.save(ours.mcore_to_pyt_state_dict(grouped), checkpoint_id=path, planner=ours.MCoreSavePlanner(flatten_state_dict=False),
             no_dist=True)
    return path


def load(checkpoint, *leaves, **options):
    """The data of the leaves of one key."""
    request = ours.mcore_to_pyt_state_dict({leaves[0].key: list(leaves)}, is_loading=True)
    dcp.load(request, storage_reader=Reader(checkpoint), planner=ours.MCoreLoadPlanner(shapes_validation_sharded_tensors=leaves,
                                                                                     **options), no_dist=True)
    return ours._unwrap_pyt_sharded_tensor(request[leaves[0].key])


@pytest.mark.parametrize("key", SHAPES)
@pytest.mark.parametrize("cuts", [1, 2, 3])
def test_any_grid_and_any_range_is_filled(key, cuts, checkpoint):
    source = random.Random(cuts)
    for axis, extent in enumerate(SHAPES[key]):
        if extent % cuts:
            continue
        for index in range(cuts):
            expected = values(key).chunk(cuts, axis)[index]
            leaf = ours.ShardedTensor.from_rank_offsets(key, torch.full(expected.shape, -1.0), (axis, index, cuts))
            assert torch.equal(load(checkpoint, leaf)[0], expected)
            begin = source.randrange(expected.numel())
            flat = slice(begin, source.randint(begin, expected.numel()))
            leaf = ours.ShardedTensor.from_rank_offsets_flat(key, torch.full((flat.stop - flat.start,), -1.0), expected.shape,
                                                             (axis, index, cuts), flattened_range=flat)
            assert torch.equal(load(checkpoint, leaf)[0], expected.reshape(-1)[flat])


def test_layers_several_shards_and_strided_targets(checkpoint):
    leaves = [ours.ShardedTensor.from_rank_offsets("layers", torch.zeros(3, 2).t(), (0, layer, 2), prepend_axis_num=1)
              for layer in range(2)]
    assert not leaves[0].data.is_contiguous()
    found = load(checkpoint, *leaves)
    assert all(torch.equal(found[layer], values("layers")[layer]) for layer in range(2))
    assert found[0].data_ptr() == leaves[0].data.data_ptr()
    assert torch.equal(load(checkpoint, ours.ShardedTensor.from_rank_offsets("other", torch.zeros(3)))[0], torch.arange(3.0))


def test_only_the_needed_ranges_are_read(checkpoint):
    leaf = ours.ShardedTensor.from_rank_offsets_flat("whole", torch.zeros(4), (4, 6), flattened_range=slice(8, 12))
    planner = ours.MCoreLoadPlanner(shapes_validation_sharded_tensors=[leaf])
    planner.set_up_planner(ours.mcore_to_pyt_state_dict({"whole": [leaf]}, is_loading=True), Reader(checkpoint).read_metadata(), True)
    items = planner.create_local_plan().items
    assert sorted((tuple(i.storage_offsets), tuple(i.lengths)) for i in items) == [((0, 0, 0), (1, 1, 2)), ((0, 0, 8), (1, 1, 2))]


def test_wrong_shapes_are_refused(checkpoint):
    for options, text in (({}, "Global shape mismatch"), ({"allow_shape_mismatch": True}, "cannot be changed")):
        leaf = ours.ShardedTensor.from_rank_offsets("whole", torch.zeros(4, 3), **options)
        planner = ours.MCoreLoadPlanner()
        planner.set_up_planner(ours.mcore_to_pyt_state_dict({"whole": [leaf]}, is_loading=True), Reader(checkpoint).read_metadata(), True)
        with pytest.raises((ours.CheckpointingException, NotImplementedError), match=text):
            planner.create_local_plan()
    with pytest.raises(BaseException, match="Global shape mismatch"):
        load(checkpoint, ours.ShardedTensor.from_rank_offsets("whole", torch.zeros(4, 3)))


@pytest.mark.parametrize("key", SHAPES)
def test_an_entry_whose_shape_nothing_says_is_named(key, checkpoint):
    leaf = ours.ShardedTensor.from_rank_offsets(key, torch.zeros(SHAPES[key]))
    wanted = ours.mcore_to_pyt_state_dict({key: [leaf]}, is_loading=True)
    metadata = dcp.FileSystemReader(checkpoint).read_metadata()
    assert not hasattr(metadata, "mcore_data")
    for options in ({"shapes_validation_sharded_tensors": [leaf]}, {"allow_shape_mismatch_sharded_tensors": {key: leaf}}):
        planner = ours.MCoreLoadPlanner(**options)
        planner.set_up_planner(wanted, metadata, True)
        with pytest.raises(ours.CheckpointingException, match=f"^{key} .*no mcore_data.*save it again"):
            planner.create_local_plan()


def test_descriptors_of_the_original_are_filled_too(checkpoint, original, one_rank):
    leaf = original.mapping.ShardedTensor.from_rank_offsets("whole", torch.zeros(2, 6), (0, 1, 2))
    request = original.strategies.mcore_to_pyt_state_dict({"whole": [leaf]}, True)
    dcp.load(request, storage_reader=Reader(checkpoint), planner=ours.MCoreLoadPlanner(shapes_validation_sharded_tensors=[leaf]),
             no_dist=True)
    assert torch.equal(leaf.data, values("whole")[2:])
