# SPDX-License-Identifier: Apache-2.0
"""Who of a group saves or loads which shard: Megatron's uniform distribution, on descriptions.

Shards are chosen in the order (main replica elsewhere, number of holders, most bytes, id); each goes to its holder
with the fewest bytes so far, ties to the lowest rank. The result is the same on all ranks and for any order of the
input. Shards without elements are no part of a distribution: their ids, which know no sizes, are those of a neighbour, whose
elements would be counted as nobody's or lost. They are saved by nobody and loaded by each holder for itself.
"""
from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch.distributed as dist

from ...errors import FailedPreconditionError, InvalidArgumentError
from ._agreement import Ranks
from ._exchange import group_rank, group_size
from ._owners import choose_owners
from .kinds import flat_range_of, is_main_replica, is_sharded_tensor
from .sharded_tensor import data_shape
from .trees import dict_list_map_outplace, nested_values

ShardId = tuple[str, tuple[int, ...], tuple[int, int] | None]
ObjectId = tuple[str, tuple[int, ...], tuple[int, ...]]
Shard = TypeVar("Shard")


class _Fields(NamedTuple):
    main_rank_for_shard: dict[ShardId, int]
    shards_in_this_group: set[ShardId]
    shard_to_metadata: Mapping[ShardId, Any]
    all_ranks_for_shard: dict[ShardId, list[int]]


class ShardDistribution(_Fields):
    """A distribution inside one group of ranks; ranks are those of the group. Shards without elements are left out.

    Attributes:
        main_rank_for_shard: who saves or reads each shard, in the order of the choice.
        shards_in_this_group: shards whose main replica is in the group; when loading, all shards of the group.
        shard_to_metadata: description of each shard that the group holds, from its first holder.
        all_ranks_for_shard: holders of each distributed shard.
        loading: whether it was made for a load; no field of the tuple, which has those of the original.
    """

    loading = False


def shard_id_of(tensor: Any) -> ShardId:
    """Identity of the elements of a ShardedTensor: equal for replicas on other ranks."""
    flat = flat_range_of(tensor)
    return tensor.key, tuple(tensor.global_offset), None if flat is None else (flat.start, flat.stop)


def object_id_of(value: Any) -> ObjectId:
    """Identity of a ShardedObject: equal for replicas on other ranks."""
    return value.key, value.global_offset, value.global_shape


def shard_bytes(tensor: Any) -> int:
    """Bytes of the elements of a ShardedTensor."""
    return math.prod(data_shape(tensor)) * int(tensor.dtype.itemsize)


def distribute_shards_to_ranks(shard_to_ranks: Mapping[Shard, Sequence[int]], shard_to_size: Mapping[Shard, int],
                               num_ranks: int,
                               cross_parallelization_group_loads: Collection[Shard] = frozenset()) -> dict[Shard, int]:
    """The owner of each shard, in the order of the choice.

    Args:
        shard_to_ranks: holders of each shard; ids must be comparable with each other. Shards with the same list
            object are known to have the same holders, which saves time.
        shard_to_size: bytes of each shard.
        num_ranks: ranks are 0 to num_ranks - 1.
        cross_parallelization_group_loads: shards that are chosen last.
    Raises:
        InvalidArgumentError: a shard without holders, or with a holder that is no rank.
    """
    shards, lists = list(shard_to_ranks), list(shard_to_ranks.values())
    numbers, holder_sets = _holder_sets(shards, lists, num_ranks)
    counts = [len(ranks) for ranks in holder_sets]
    sizes, cross = shard_to_size, cross_parallelization_group_loads
    rows = sorted([(shard in cross, counts[number], -sizes[shard], shard, number)
                   for shard, number in zip(shards, numbers, strict=True)])
    owners = choose_owners(holder_sets, [row[4] for row in rows], [-row[2] for row in rows], [row[0] for row in rows],
                           num_ranks)
    return {row[3]: owner for row, owner in zip(rows, owners, strict=True)}


def _holder_sets(shards: Sequence[Any], lists: Sequence[Sequence[int]],
                 num_ranks: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """The number of each shard's holder set, and the distinct sets. A list that stands for several shards is read
    once."""
    by_object: dict[int, int] = {}  # `lists` keeps its members alive, so an id means one of them
    by_listing: dict[tuple[int, ...], int] = {}
    sets: dict[tuple[int, ...], int] = {}
    numbers = []
    for shard, ranks in zip(shards, lists, strict=True):
        number = by_object.get(id(ranks))
        if number is None:
            listing = tuple(ranks)
            number = by_listing.get(listing)
            if number is None:
                content = tuple(sorted(set(listing)))
                if not content or content[0] < 0 or content[-1] >= num_ranks:
                    raise InvalidArgumentError(f"the shard {shard} has the holders {list(content[:5])}, expected ranks "
                                               f"below {num_ranks}", {"shard": str(shard)})
                number = by_listing[listing] = sets.setdefault(content, len(sets))
            by_object[id(ranks)] = number
        numbers.append(number)
    return numbers, list(sets)


class _RankClass(NamedTuple):
    """Ranks that hold the same shards; replica ids may differ."""

    ranks: list[int]
    tensors: Sequence[Any]
    main: Sequence[bool]  # whether one of the ranks has the main replica


def main_replica_distribution(all_shards: Sequence[Sequence[Any]], ignore_groups: bool = False) -> ShardDistribution:
    """The distribution of what each rank of a group describes.

    Args:
        all_shards: ShardedTensors of each rank, in rank order; their data is not used.
        ignore_groups: distribute also the shards whose main replica no rank of the group has, after all others. For
            loads.
    """
    classes = [_RankClass([rank], tensors, [is_main_replica(tensor.replica_id) for tensor in tensors])
               for rank, tensors in enumerate(all_shards)]
    return _distribution(classes, len(all_shards), ignore_groups)


def is_same_part(tensor: Any, other: Any) -> bool:
    """Whether two ShardedTensors of one id also have one extent and dtype: ids know neither."""
    return data_shape(tensor) == data_shape(other) and bool(tensor.dtype == other.dtype)


def has_elements(tensor: Any) -> bool:
    """Whether a ShardedTensor holds anything."""
    return 0 not in data_shape(tensor)


def _distribution(classes: Sequence[_RankClass], num_ranks: int, ignore_groups: bool) -> ShardDistribution:
    holders: dict[ShardId, list[int]] = {}  # numbers of classes
    metadata: dict[ShardId, Any] = {}
    main: set[ShardId] = set()
    for number, (_, tensors, has_main) in enumerate(classes):
        for tensor, is_main in zip(tensors, has_main, strict=True):
            if not has_elements(tensor):
                continue
            shard = shard_id_of(tensor)
            found = holders.get(shard)
            if found is None:
                holders[shard], metadata[shard] = [number], tensor
            elif ignore_groups and not is_same_part(tensor, metadata[shard]):
                continue  # its rank loads it for itself
            elif found[-1] != number:
                found.append(number)
            if is_main:
                main.add(shard)
    universe = set(holders) if ignore_groups else main
    ranks_of: dict[tuple[int, ...], list[int]] = {}
    chosen = {}
    for shard, numbers in holders.items():
        if shard in universe:
            together = tuple(numbers)
            if together not in ranks_of:
                ranks_of[together] = sorted(rank for number in together for rank in classes[number].ranks)
            chosen[shard] = ranks_of[together]
    sizes = {shard: shard_bytes(metadata[shard]) for shard in chosen}
    owners = distribute_shards_to_ranks(chosen, sizes, num_ranks, universe - main)
    made = ShardDistribution(owners, universe, metadata, chosen)
    made.loading = ignore_groups
    return made


def determine_main_replica_uniform_distribution(sharded_state_dict: Any,
                                                parallelization_group: dist.ProcessGroup | None = None,
                                                ignore_groups: bool = False) -> ShardDistribution | None:
    """The distribution of what the ranks of a group hold. Collective in the group; None = the default group.

    Objects are not distributed. Returns None in a group of one rank. Ranks exchange digests and one byte per shard;
    descriptions travel once for ranks that hold the same shards.

    Args:
        ignore_groups: as in main_replica_distribution.
    Raises on all ranks what the lowest rank that fails does, as for a leaf that is no descriptor.
    """
    if group_size(parallelization_group) <= 1:
        return None
    ranks = Ranks(parallelization_group)
    tensors, summary = ranks.together(lambda: _tensors_and_summary(sharded_state_dict))
    summaries = ranks.gathered(summary)
    holders_of: dict[bytes, list[int]] = {}
    for rank, (digest, _) in enumerate(summaries):
        holders_of.setdefault(digest, []).append(rank)
    first = {holders[0] for holders in holders_of.values()}
    rank = group_rank(parallelization_group)
    described = ranks.gathered(ranks.together(
        lambda: [tensor.without_data() for tensor in tensors] if rank in first else None))
    classes = []
    for holders in holders_of.values():
        flags = zip(*(summaries[holder][1] for holder in holders), strict=True)
        classes.append(_RankClass(holders, described[holders[0]], [any(column) for column in flags]))
    return _distribution(classes, len(summaries), ignore_groups)


def _tensors_and_summary(sharded_state_dict: Any) -> tuple[list[Any], tuple[bytes, bytes]]:
    tensors = [leaf for leaf in nested_values(sharded_state_dict) if is_sharded_tensor(leaf)]
    return tensors, _summary(tensors)


def _summary(tensors: Sequence[Any]) -> tuple[bytes, bytes]:
    """A digest of all but replica ids, and whether each is a main replica."""
    text = repr([_description(tensor) for tensor in tensors])
    main = bytes(is_main_replica(tensor.replica_id) for tensor in tensors)
    return hashlib.blake2b(text.encode(), digest_size=16).digest(), main


def content_digest(sharded_state_dict: Any) -> bytes:
    """16 bytes of what a distribution depends on, of this rank: equal as long as nothing of it has changed."""
    digest, main = _summary([leaf for leaf in nested_values(sharded_state_dict) if is_sharded_tensor(leaf)])
    return hashlib.blake2b(digest + main, digest_size=16).digest()


def _description(tensor: Any) -> tuple[Any, ...]:
    """All of a ShardedTensor but data and replica id, as plain values with one text for equal values."""
    fragments = tensor.axis_fragmentations
    return (type(tensor).__module__, shard_id_of(tensor)[0], str(tensor.dtype), tuple(tensor.local_shape),
            tuple(tensor.global_shape), tuple(tensor.global_offset), None if fragments is None else tuple(fragments),
            tensor.prepend_axis_num, tensor.allow_shape_mismatch, shard_id_of(tensor)[2])


def distribute_main_replicas_with_precomputed_distribution(
        sharded_state_dict: Any, parallelization_group: dist.ProcessGroup | None,
        precomputed_distribution: ShardDistribution | None) -> Any:
    """A state dict whose ShardedTensors have replica id 0 where this rank is their owner, 1 elsewhere. Those without elements
    have 1 in a save, which leaves them out, and 0 in a load, which needs nobody for them.

    The given state dict and its descriptors stay as they are; data is shared. In a group of one rank the given state
    dict is returned.

    Raises:
        InvalidArgumentError: no distribution for a group of several ranks.
        FailedPreconditionError: a shard is not part of the distribution, which was made for another state.
    """
    if group_size(parallelization_group) <= 1:
        return sharded_state_dict
    if precomputed_distribution is None:
        raise InvalidArgumentError("precomputed_distribution must be not None for non-trivial parallelization group",
                                   {"parameter": "precomputed_distribution"})
    return with_owners(sharded_state_dict, precomputed_distribution, group_rank(parallelization_group))


def with_owners(sharded_state_dict: Any, distribution: ShardDistribution, rank: int) -> Any:
    """What distribute_main_replicas_with_precomputed_distribution gives on `rank` of the group."""

    def own(leaf: Any) -> Any:
        if not is_sharded_tensor(leaf):
            return leaf
        shard = shard_id_of(leaf)
        if not has_elements(leaf):
            changed = copy.copy(leaf)
            changed.replica_id = 0 if getattr(distribution, "loading", False) else 1
            return changed
        if shard not in distribution.shard_to_metadata:
            raise FailedPreconditionError(f"the shard at {leaf.global_offset} of {leaf.key} is not part of the "
                                          "distribution, which was made for another state", {"key": leaf.key})
        changed = copy.copy(leaf)
        alone = getattr(distribution, "loading", False) and not is_same_part(leaf, distribution.shard_to_metadata[shard])
        changed.replica_id = 0 if alone or distribution.main_rank_for_shard.get(shard) == rank else 1
        return changed

    return dict_list_map_outplace(own, sharded_state_dict)

