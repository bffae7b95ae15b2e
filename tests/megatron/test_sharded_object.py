# SPDX-License-Identifier: Apache-2.0
"""ShardedObject: names of cells and the way back."""
import pytest
from shardwright.torch.megatron import CheckpointingException, LocalNonpersistentObject, ShardedObject

CELLS = [("ObjB", (3,), (8,)), ("ObjB", (0, 3), (1, 8)), ("a/b", (1,), (2,)), ("x/shard_1_2", (0,), (1,)), ("k", (), ()),
         ("with_underscore", (2,), (3,))]


@pytest.mark.parametrize(("key", "offset", "shape"), CELLS)
def test_names_of_cells_come_back(key, offset, shape):
    made = ShardedObject(key, None, shape, offset)
    assert ShardedObject.empty_from_unique_key(made.unique_key) == made


def test_the_name_is_that_of_the_original(original):
    for key, offset, shape in CELLS:
        assert ShardedObject(key, 1, shape, offset).unique_key == original.mapping.ShardedObject(key, 1, shape, offset).unique_key
    assert ShardedObject("ObjB", None, (1, 8), (0, 3)).unique_key == "ObjB/shard_0.3_1.8"


def test_keys_with_a_slash_and_empty_grids_fail_in_the_original(original):
    for name in ("a/b/shard_1_2", "k/shard__"):
        with pytest.raises(ValueError):
            original.mapping.ShardedObject.empty_from_unique_key(name)
        assert ShardedObject.empty_from_unique_key(name).unique_key == name


def test_old_names_lack_the_last_extent():
    assert ShardedObject.empty_from_unique_key("x/shard_0.3_1", replica_id=2) == ShardedObject("x", None, (1, -1), (0, 3), 2)


@pytest.mark.parametrize("name", ["k", "k/shard_1", "k/shard_1_2_3", "k/shard_a_1", "k/other_1_2"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="KEY/shard_OFFSET_SHAPE"):
        ShardedObject.empty_from_unique_key(name)


def test_shape_and_offset_have_one_length():
    with pytest.raises(CheckpointingException, match="2 extents and 1 offsets"):
        ShardedObject("k", None, (1, 8), (0,))


def test_nonpersistent_values_unwrap_to_themselves():
    value = object()
    assert LocalNonpersistentObject(value).unwrap() is value
