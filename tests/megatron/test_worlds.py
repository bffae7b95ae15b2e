# SPDX-License-Identifier: Apache-2.0
"""Worlds of many ranks in one process: every rank plans, the coordinator merges, bytes are moved by the plans alone, and
another partition is loaded. Uneven lines, swapped axes, and random worlds beside megatron-core's planner.
"""
import random

import pytest
import torch
from shardwright.torch import megatron as ours


def local_plan(leaves, planner_class=None, convert=None):
    """(planner, local plan) of one rank; leaves are descriptors in any order."""
    grouped, _, _ = ours._replace_state_dict_keys_with_sharded_keys({"l": list(leaves)}, keep_only_main_replica=True)
    planner = (planner_class or ours.MCoreSavePlanner)(flatten_state_dict=False)
    planner.set_up_planner((convert or ours.mcore_to_pyt_state_dict)(grouped), None, False)
    return planner, planner.create_local_plan()


def save(ranks):
    """Stored bytes by (name, offset), and the metadata, of what the ranks hold."""
    made = [local_plan(leaves) for leaves in ranks]
    coordinator = ours.MCoreSavePlanner(flatten_state_dict=False)
    coordinator.set_up_planner({}, None, True)
    plans, metadata = coordinator.create_global_plan([plan for _, plan in made])
    stored = {}
    for (planner, _), plan in zip(made, plans):
        for item in planner.finish_plan(plan).items:
            assert (item.index.fqn, item.index.offset) not in stored
            stored[item.index.fqn, item.index.offset] = planner.resolve_data(item).clone()
    return stored, metadata


def load(leaves, stored, metadata):
    """Fills the tensors of one rank."""
    if not leaves:
        return []
    grouped, _, names = ours._replace_state_dict_keys_with_sharded_keys({"l": list(leaves)})
    wanted = ours.mcore_to_pyt_state_dict(grouped, is_loading=True)
    planner = ours.MCoreLoadPlanner(shapes_validation_sharded_tensors=leaves)
    planner.set_up_planner(wanted, metadata, False)
    for item in planner.create_local_plan().items:
        source = stored[item.storage_index.fqn, item.storage_index.offset]
        for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths)):
            source = source.narrow(dim, start, length)
        target = planner.resolve_tensor(item)
        target.copy_(source)
        planner.commit_tensor(item, target)
    return [tensor for key in names for tensor in ours._unwrap_pyt_sharded_tensor(wanted[key])]


def line(counts, start=0, fill=None):
    """Shards of one key in runs of these lengths: one irregular line of sum(counts) elements, told by rank."""
    total = sum(sum(of_rank) for of_rank in counts)
    ranks = []
    for of_rank in counts:
        ranks.append([])
        for count in of_rank:
            data = torch.arange(start, start + count) if fill is None else torch.full((count,), fill)
            ranks[-1].append(ours.ShardedTensor("line", data, data.dtype, (count,), (total,), (start,), None))
            start += count
    return ranks


def each(counts):
    return [[count] for count in counts]


UNEVEN = [
    (each([1, 5, 7, 3, 6, 2, 5, 4]), each([14, 3, 6, 3, 1, 1, 2, 3])),
    (each([5] * 6 + [0, 0]), each([5, 0, 5, 0, 5, 5, 3, 7])),
    (each([15] + [0] * 7), each([0] * 3 + [3] * 5)),
    ([[4], [7, 8], *[[1]] * 5, [3, 3]], [[2, 4], [], [5], [], [5, 9], [], [1] * 5, []]),
]


@pytest.mark.parametrize(("saved", "wanted"), UNEVEN)
def test_uneven_lines_are_loaded_into_other_lines(saved, wanted):
    stored, metadata = save(line(saved))
    assert sum(tensor.numel() for tensor in stored.values()) == sum(map(sum, saved))
    for expected, leaves in zip(line(wanted), line(wanted, fill=-1)):
        for found, leaf in zip(load(leaves, stored, metadata), expected):
            assert torch.equal(found, leaf.data)


def test_an_empty_shard_never_hides_its_neighbour(original, one_rank):
    """Both begin at one offset. The original's plan has two items of one index there, and leaves one on any rank."""
    counts = each([5, 0, 5])
    stored, metadata = save(line(counts))
    assert sorted(tensor.numel() for tensor in stored.values()) == [5, 5]
    theirs = [original.mapping.ShardedTensor(leaf.key, leaf.data, leaf.dtype, leaf.local_shape, leaf.global_shape,
                                             leaf.global_offset, None) for (leaf,) in line(counts)]
    plans = [local_plan([leaf], original.strategies.MCoreSavePlanner, original.strategies.mcore_to_pyt_state_dict)[1]
             for leaf in theirs]
    assert [item.index for plan in plans[1:] for item in plan.items][0] == plans[2].items[0].index


def grid(whole, rank, columns_first, fill=None):
    """The shard of one of 8 ranks: (2, 4) or (4, 2) parts, with the layer as a prepended axis."""
    rows, columns = (2, 4) if columns_first else (4, 2)
    row, column = (rank % rows, rank // rows) if columns_first else (rank // columns, rank % columns)
    leaves = []
    for layer in range(whole.shape[0]):
        data = whole[layer].chunk(rows, 0)[row].chunk(columns, 1)[column].clone()
        data = data if fill is None else torch.full_like(data, fill)
        leaves.append(ours.ShardedTensor.from_rank_offsets("grid", data, (0, layer, whole.shape[0]), (1, row, rows),
                                                           (2, column, columns), prepend_axis_num=1))
    return leaves


def test_partitions_change_with_swapped_axes_and_prepended_layers():
    whole = torch.arange(3 * 8 * 16).reshape(3, 8, 16)
    stored, metadata = save([grid(whole, rank, True) for rank in range(8)])
    for rank in range(8):
        found = load(grid(whole, rank, False, fill=-1), stored, metadata)
        assert all(torch.equal(a, b.data) for a, b in zip(found, grid(whole, rank, False)))


def random_leaves(kinds, source, ranks):
    """What each rank holds: split, replicated and irregular tensors, and objects, without prepended axes."""
    worlds = [[] for _ in range(ranks)]
    for number in range(source.randint(1, 6)):
        key, shape = f"k{number}", [source.randint(1, 4) for _ in range(source.randint(1, 3))]
        axis, kind = source.randrange(len(shape)), source.choice(["split", "replica", "irregular", "object"])
        begin = 0
        total = [source.randint(1, 3) for _ in range(ranks)]
        for rank in range(ranks):
            data = torch.rand(shape)
            if kind == "split":
                leaf = kinds.ShardedTensor.from_rank_offsets(key, data, (axis, rank, ranks))
            elif kind == "replica":
                leaf = kinds.ShardedTensor.from_rank_offsets(key, data, replica_id=(rank + number) % ranks)
            elif kind == "object":
                leaf = kinds.ShardedObject(key, rank, (ranks,), (rank,))
            else:
                local = (*shape[:axis], total[rank], *shape[axis + 1:])
                whole = (*shape[:axis], sum(total), *shape[axis + 1:])
                offset = tuple(begin if a == axis else 0 for a in range(len(shape)))
                leaf = kinds.ShardedTensor(key, torch.rand(local), data.dtype, local, whole, offset, None)
                begin += total[rank]
            worlds[rank].append(leaf)
    return worlds


def test_random_worlds_are_planned_as_by_the_original(original, one_rank):
    theirs = original.strategies
    for number in range(60):
        source = random.Random(number)
        worlds = random_leaves(original.mapping, source, source.randint(1, 5))
        expected = [local_plan(leaves, theirs.MCoreSavePlanner, theirs.mcore_to_pyt_state_dict)[1] for leaves in worlds]
        found = [local_plan(leaves)[1] for leaves in worlds]
        coordinators = ours.MCoreSavePlanner(flatten_state_dict=False), theirs.MCoreSavePlanner(flatten_state_dict=False)
        for coordinator in coordinators:
            coordinator.set_up_planner({}, None, True)
        plans, metadata = coordinators[0].create_global_plan(list(found))
        their_plans, their_metadata = coordinators[1].create_global_plan(list(expected))
        assert [list(plan.items) for plan in found] == [plan.items for plan in expected], number
        assert [list(plan.items) for plan in plans] == [plan.items for plan in their_plans], number
        hints = [[item.index.index for item in plan.items] for plan in (*plans, *their_plans)]
        assert hints[:len(plans)] == hints[len(plans):], number
        assert dict(metadata.state_dict_metadata) == their_metadata.state_dict_metadata, number
