# SPDX-License-Identifier: Apache-2.0
"""Proof that the main replicas of all ranks make whole tensors and whole grids of objects. Pure, the same on all ranks.

Linear in the shards, whatever the grid. Irregular grids are proved, too, and errors name the ranks.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist

from ._agreement import Ranks
from ._tiling import tiling_problem
from .errors import ShardingError, failure, require
from .kinds import flat_range_of, is_main_replica, is_sharded_base, is_sharded_object
from .sharded_tensor import check_sharded_tensor
from .trees import diff, nested_values

RankedLeaf = tuple[int, Any]


def determine_global_metadata(sharded_state_dict: Any,
                              process_group: dist.ProcessGroup | None = None) -> tuple[list[Any], list[list[Any]]]:
    """Descriptions without data of this rank and of all ranks of the group. Collective; None = the default group.

    Raises:
        ShardingAssertionError on all ranks where one has a leaf that is not sharded.
    """
    return described_on_all(sharded_state_dict, Ranks(process_group))


def described_on_all(sharded_state_dict: Any, ranks: Ranks) -> tuple[list[Any], list[list[Any]]]:
    """The same over ranks that have met."""

    def describe() -> list[Any]:
        leaves = list(nested_values(sharded_state_dict))
        for leaf in leaves:
            require(is_sharded_base(leaf), f"a {type(leaf).__name__} is not sharded")
        return [leaf.without_data() for leaf in leaves]

    mine = ranks.together(describe)
    return mine, ranks.gathered(mine)


def validate_sharding_integrity(global_metadata: Sequence[Sequence[Any]], common_state_dict: Any = None) -> None:
    """Checks the descriptions of all ranks, in rank order.

    Args:
        common_state_dict: accepted for the signature of the original; compare_common_state_dicts compares them.
    Raises:
        ShardingError: holders of a key contradict each other, or main replicas overlap or leave a hole. Where the
            original asserts it is an AssertionError, too.
    """
    by_key: dict[str, list[RankedLeaf]] = {}
    for rank, leaves in enumerate(global_metadata):
        for leaf in leaves:
            by_key.setdefault(leaf.key, []).append((rank, leaf))
    for key, holders in by_key.items():
        objects = sum(is_sharded_object(leaf) for _, leaf in holders)
        require(objects in (0, len(holders)), f"{key} is a tensor on one rank and an object on another", key=key)
        if objects:
            _validate_objects(key, holders)
        else:
            _validate_tensors(key, holders)


def compare_common_state_dicts(all_common: Sequence[Any]) -> list[str]:
    """Differences between rank 0's common state dict and those of the other ranks, one sentence per rank."""
    found = []
    for rank, other in enumerate(all_common[1:], 1):
        left, right, mismatch = diff(all_common[0], other)
        if left or right or mismatch:
            found.append(f"Rank {rank} common state dict differs from rank 0 common state dict. Keys only on rank 0: "
                         f"{left}, keys only on {rank}: {right}, mismatched keys: {mismatch}")
    return found


def _signature(leaf: Any) -> tuple[Any, ...]:
    """What all holders of a key must have alike."""
    regular = leaf.axis_fragmentations is not None
    local = leaf.local_shape if regular else None
    return leaf.dtype, leaf.global_shape, leaf.axis_fragmentations, leaf.prepend_axis_num, local


def _validate_tensors(key: str, holders: Sequence[RankedLeaf]) -> None:
    first_rank, first = holders[0]
    signature = _signature(first)
    for rank, leaf in holders:
        if _signature(leaf) != signature:
            pairs = zip(("dtype", "global_shape", "axis_fragmentations", "prepend_axis_num", "local_shape"), signature,
                        _signature(leaf), strict=True)
            name, expected, value = next(row for row in pairs if row[1] != row[2])
            require(False, f"{key}: {name} is {expected} on rank {first_rank} and {value} on rank {rank}", key=key,
                    rank=first_rank, other_rank=rank)
    mains = [(rank, leaf) for rank, leaf in holders if is_main_replica(leaf.replica_id)]
    if first.axis_fragmentations is None:
        for _, leaf in holders:
            check_sharded_tensor(leaf)
        problem = tiling_problem(first.global_shape, [(rank, leaf.global_offset, _sizes(leaf)) for rank, leaf in mains])
    else:
        check_sharded_tensor(first)
        problem = _grid_problem(first, mains)
    if problem is not None:
        raise failure(ShardingError, f"Invalid access pattern for {first}: {problem}", key=key)


def _sizes(leaf: Any) -> tuple[int, ...]:
    return (*(1,) * leaf.prepend_axis_num, *leaf.local_shape)


def _grid_problem(first: Any, mains: Sequence[RankedLeaf]) -> str | None:
    """What is wrong with the main replicas of a regular grid: each cell must have one, or ranges that fill it.

    A cell is known by its offset, which is a multiple of the extents of the shards.
    """
    cells: dict[tuple[int, ...], list[RankedLeaf]] = {}
    for ranked in mains:
        cells.setdefault(tuple(ranked[1].global_offset), []).append(ranked)
    sizes, fragments = _sizes(first), first.axis_fragmentations
    for offset, holders in cells.items():
        if len(holders) > 1 or flat_range_of(holders[0][1]) is not None:
            problem = _cell_problem(holders)
            if problem is not None:
                return f"the shard at position {_position(offset, sizes)} of the grid {problem}"
    for axis, offsets in enumerate(zip(*cells, strict=True)):
        if min(offsets) < 0 or max(offsets) > (fragments[axis] - 1) * sizes[axis]:
            return f"shards lie outside of the grid on axis {axis}: offsets go from {min(offsets)} to {max(offsets)}"
    count = math.prod(fragments) if math.prod(first.global_shape) else len(cells)
    if len(cells) != count:
        absent = _first_absent({_position(offset, sizes) for offset in cells}, fragments)
        return f"{count - len(cells)} of {count} shards have no main replica, the first at position {absent} of the grid"
    return None


def _position(offset: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(begin // size if size else 0 for begin, size in zip(offset, sizes, strict=True))


def _cell_problem(holders: Sequence[RankedLeaf]) -> str | None:
    flat = [(flat_range_of(leaf), rank) for rank, leaf in holders]
    if all(found is None for found, _ in flat):
        ranks = [rank for rank, _ in holders]
        return None if len(ranks) == 1 else f"has main replicas on the ranks {ranks[:5]}"
    if any(found is None for found, _ in flat):
        return "is flattened on one rank and not on another"
    ranges = sorted((found.start, found.stop, rank) for found, rank in flat if found is not None)
    end = 0
    for start, stop, rank in ranges:
        if start != end:
            return f"has {'a hole before' if start > end else 'two holders of'} element {start} (rank {rank})"
        end = stop
    count = math.prod(holders[0][1].local_shape)
    return None if end == count else f"ends at element {end} of {count}"


def _first_absent(cells: set[tuple[int, ...]], fragments: Sequence[int]) -> tuple[int, ...]:
    """The first position, row-major, without a cell; looks at no more positions than there are cells."""
    position = [0] * len(fragments)
    while tuple(position) in cells:
        axis = len(position) - 1
        while axis > 0 and position[axis] + 1 == fragments[axis]:
            position[axis] = 0
            axis -= 1
        position[axis] += 1
    return tuple(position)


def _validate_objects(key: str, holders: Sequence[RankedLeaf]) -> None:
    shapes = {leaf.global_shape for _, leaf in holders}
    require(len(shapes) == 1, f"{key}: the grid of objects has the extents {sorted(map(str, shapes))[:5]}", key=key)
    counts = Counter(leaf.unique_key for _, leaf in holders if is_main_replica(leaf.replica_id))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise failure(ShardingError, f"Duplicate ShardedObject keys: {repeated}", key=key)
    expected = math.prod(holders[0][1].global_shape)
    if len(counts) != expected:
        raise failure(ShardingError, f"Invalid access pattern: {expected - len(counts)} ShardedObject are missing. "
                                     f"There are {sorted(counts)[:5]} of {key}", key=key)
