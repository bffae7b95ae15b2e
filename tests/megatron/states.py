# SPDX-License-Identifier: Apache-2.0
"""States that two ranks hold, of the descriptors of either package. Nothing here needs megatron-core."""
import torch
from shardwright.torch import megatron as ours


def values(*shape):
    count = 1
    for extent in shape:
        count *= extent
    return torch.arange(float(count)).reshape(shape)


WHOLE = {"rows": values(8, 6), "layers": values(4, 3, 2), "same": values(5), "uneven": values(7), "many": values(9, 2),
         "scalar": torch.tensor(3.5)}
UNEVEN = {0: (0, 5), 1: (5, 2)}
MANY = {0: [(0, 1), (4, 2), (9, 0)], 1: [(1, 3), (6, 3)]}


def irregular(kinds, key, data, offset, shape):
    return kinds.ShardedTensor(key, data.clone(), data.dtype, tuple(data.shape), tuple(shape), tuple(offset), None, 0)


def state(kinds, rank, axis=0, regular_only=False):
    """The tree that a rank saves, or asks for along another axis."""
    rows = WHOLE["rows"].chunk(2, axis)[rank].clone()
    tree = {"rows": kinds.ShardedTensor.from_rank_offsets("rows", rows, (axis, rank, 2)),
            "layers": {2 * rank + n: kinds.ShardedTensor.from_rank_offsets(
                "layers", WHOLE["layers"][2 * rank + n].clone(), (0, 2 * rank + n, 4), prepend_axis_num=1) for n in range(2)},
            "same": kinds.ShardedTensor.from_rank_offsets("same", WHOLE["same"].clone(), replica_id=rank),
            "scalar": kinds.ShardedTensor.from_rank_offsets("scalar", WHOLE["scalar"].clone(), replica_id=(0, rank)),
            "objects": [kinds.ShardedObject("own", {"rank": rank, "list": [1, rank]}, (2,), (rank,)),
                        kinds.ShardedObject("shared", "text", (1,), (0,), replica_id=rank)]}
    if not regular_only:
        begin, count = UNEVEN[rank]
        tree["uneven"] = irregular(kinds, "uneven", WHOLE["uneven"][begin:begin + count], (begin,), (7,))
        tree["many"] = [irregular(kinds, "many", WHOLE["many"][b:b + n], (b, 0), (9, 2)) for b, n in MANY[rank]]
    return tree


def emptied(tree):
    """The same request with other values in its tensors, and no objects."""
    def empty(leaf):
        if hasattr(leaf, "local_shape"):
            leaf.data = torch.full_like(leaf.data, -1)
        else:
            leaf.data = None
        return leaf
    return ours.dict_list_map_outplace(empty, tree)


def data_of(tree):
    return ours.dict_list_map_outplace(lambda leaf: leaf.data, tree)


def assert_equal(found, expected):
    assert ours.diff(found, expected) == ([], [], []), ours.diff(found, expected)
