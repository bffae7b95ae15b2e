# SPDX-License-Identifier: Apache-2.0
"""ShardedTensor: numbers of construction, narrowing, invariants."""
import pickle

import pytest
import shardwright
import torch
from shardwright.torch.megatron import CheckpointingException, ShardedTensor, is_main_replica
from shardwright.torch.megatron.sharded_tensor import check_sharded_tensor

GRIDS = [
    ((1, 3, 7, 9), [(0, 0, 10), (2, 3, 6)], 0, (10, 3, 42, 9), (0, 0, 21, 0), (10, 1, 6, 1)),
    ((3, 4), [(0, 2, 5), (2, 1, 3)], 1, (5, 3, 12), (2, 0, 4), (5, 1, 3)),
    ((3, 4), [(0, 0, 2), (0, 1, 3)], 0, (9, 4), (3, 0), (3, 1)),
    ((), [], 0, (), (), ()),
    ((), [(0, 1, 4)], 1, (4,), (1,), (4,)),
]


@pytest.mark.parametrize(("shape", "tuples", "prepended", "global_shape", "offset", "fragments"), GRIDS)
def test_rank_offsets_give_the_numbers_of_the_original(shape, tuples, prepended, global_shape, offset, fragments, kinds):
    made = kinds.ShardedTensor.from_rank_offsets("k", torch.ones(shape), *tuples, prepend_axis_num=prepended)
    assert (made.global_shape, made.global_offset, made.axis_fragmentations) == (global_shape, offset, fragments)


def test_positions_slices_and_chunk_extents():
    made = ShardedTensor.from_rank_offsets("k", torch.ones(3, 4), (0, 2, 5), (2, 1, 3), prepend_axis_num=1)
    assert made.local_chunk_offset_in_global() == (2, 0, 1)
    assert made.global_slice() == (2, slice(0, 3), slice(4, 8))
    assert made.max_allowed_chunks() == (1, 3, 4)
    empty = ShardedTensor.from_rank_offsets("k", torch.ones(0, 4), (0, 1, 2))
    assert empty.local_chunk_offset_in_global() == (0, 0)


@pytest.mark.parametrize("tuples", [[(-1, 0, 2)], [(0, -1, 2)], [(0, 0, 0)], [(0, 2, 2)]])
def test_impossible_rank_offsets_are_refused(tuples):
    with pytest.raises(CheckpointingException, match="Invalid rank offsets"):
        ShardedTensor.from_rank_offsets("k", torch.ones(3, 4), *tuples)


def test_axes_and_ranges_that_do_not_belong_here_are_refused():
    with pytest.raises(IndexError, match="axis 2"):
        ShardedTensor.from_rank_offsets("k", torch.ones(3, 4), (2, 0, 2))
    with pytest.raises(ValueError, match="from_rank_offsets_flat"):
        ShardedTensor.from_rank_offsets("k", torch.ones(3), flattened_range=slice(0, 3))
    with pytest.raises(ValueError, match="needs flattened_range"):
        ShardedTensor.from_rank_offsets_flat("k", torch.ones(3), (3,))


def make(**changed):
    fields = {"key": "k", "data": None, "dtype": torch.float32, "local_shape": (2, 4), "global_shape": (4, 4),
              "global_offset": (2, 0), "axis_fragmentations": (2, 1)}
    return ShardedTensor(**(fields | changed))


CONTRADICTIONS = [
    {"data": torch.ones(2, 4, dtype=torch.int32)}, {"data": torch.ones(4, 2)}, {"global_offset": (2,)},
    {"local_shape": (2,)}, {"prepend_axis_num": 1}, {"global_offset": (1, 0)},
    {"flattened_range": slice(0, 9)}, {"flattened_range": slice(3, 2)}, {"flattened_range": slice(0, 4, 2)},
    {"flattened_range": slice(0, 4), "data": torch.ones(2, 4)},
]


@pytest.mark.parametrize("changed", CONTRADICTIONS, ids=lambda changed: "-".join(changed))
def test_fields_that_contradict_each_other_are_refused(changed):
    with pytest.raises(CheckpointingException) as caught:
        make(**changed)
    assert caught.value.details["key"] == "k" and isinstance(caught.value, shardwright.errors.InvalidArgumentError)


BEYOND = [
    {"global_offset": (4, 0)}, {"global_offset": (-2, 0)}, {"global_shape": (6, 4)}, {"axis_fragmentations": (2,)},
    {"axis_fragmentations": None, "global_offset": (3, 0)}, {"prepend_axis_num": 1, "local_shape": (4,), "global_shape": (4, 8)},
]


@pytest.mark.parametrize("changed", BEYOND, ids=lambda changed: "-".join(changed))
def test_what_the_original_never_checks_is_checked_when_planning(changed):
    made = make(**changed)
    with pytest.raises(CheckpointingException, match="axis|fragmentation"):
        check_sharded_tensor(made)


def test_shapes_that_may_differ_need_no_whole_fragments():
    check_sharded_tensor(make(global_shape=(5, 4), allow_shape_mismatch=True))
    with pytest.raises(CheckpointingException):
        make(global_shape=(5, 4)).max_allowed_chunks()
    assert make(global_shape=(5, 4), allow_shape_mismatch=True).max_allowed_chunks() == (2, 4)


def test_narrowing_scales_the_global_numbers(kinds):
    whole = kinds.ShardedTensor.from_rank_offsets("k", torch.ones(1, 3, 7, 9), (0, 0, 10), (2, 3, 6))
    (part,) = whole.narrow(1, 0, 1)
    assert (part.local_shape, part.global_shape, part.global_offset) == ((1, 1, 7, 9), (10, 1, 42, 9), (0, 0, 21, 0))
    assert part.data.data_ptr() == whole.data.data_ptr()


def test_narrowing_an_irregular_or_fractional_grid_is_refused():
    with pytest.raises(AssertionError, match="regular grid"):
        make(global_shape=(5, 4), axis_fragmentations=None, local_shape=(2, 4)).narrow(0, 0, 1)
    with pytest.raises(AssertionError, match="do not scale"):
        make(local_shape=(3, 4), global_shape=(3, 4), global_offset=(0, 0), axis_fragmentations=(1, 1)).narrow(0, 0, 0.5)


def test_a_flattened_shard_narrows_along_its_first_axis():
    flat = ShardedTensor.from_rank_offsets_flat("k", torch.arange(5), (4, 3), (0, 1, 2), flattened_range=slice(4, 9))
    (part,) = flat.narrow(0, 0, 2)
    assert part.data.tolist() == [0, 1] and part.flattened_range == slice(4, 6) and part.global_shape == (4, 3)
    (part,) = flat.narrow(0, 2, 2)
    assert part.data.tolist() == [2, 3, 4] and part.flattened_range == slice(0, 3)
    assert flat.narrow(0, 3, 1) == []
    with pytest.raises(NotImplementedError):
        flat.narrow(1, 0, 1)


def test_data_is_allocated_only_where_there_is_none():
    made = make()
    made.init_data("cpu", torch.zeros)
    kept = made.data
    made.init_data("cpu", torch.ones)
    assert made.data is kept and kept.shape == (2, 4)
    flat = make(flattened_range=slice(3, 5))
    flat.init_data("cpu")
    assert flat.data.shape == (2,)
    assert made.without_data().data is None and made.data is kept


@pytest.mark.parametrize(("replica_id", "main"), [(0, True), (False, True), ((), True), ((0, 0), True), ([0], True),
                                                  (1, False), ((0, 1), False), ((1, 0, 0), False)])
def test_main_replicas(replica_id, main):
    assert is_main_replica(replica_id) is main


def test_errors_travel_between_processes():
    with pytest.raises(CheckpointingException) as caught:
        make(global_offset=(1, 0))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and isinstance(again, CheckpointingException) and again.details["key"] == "k"


def test_errors_are_the_originals_too_where_it_is_imported(original):
    with pytest.raises(original.mapping.CheckpointingException) as caught:
        make(global_offset=(1, 0))
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, original.mapping.CheckpointingException) and isinstance(again, ValueError)
