# SPDX-License-Identifier: Apache-2.0
"""Random worlds: the engine's plans against the plain rules of hyperparallel_oracle.py, and values through any two
meshes. SHW_SEED reproduces a world; SHW_SOAK=1 runs more of them."""
import os
import random

import numpy as np
import pytest
import hyperparallel_oracle as oracle
from shardwright.hyperparallel import (ChunkStorageMetadata, LoadItemType, MetadataIndex, ReadItem, SavePlan,
                                          StandardSavePlanner, TensorProperties, TensorStorageMetadata,
                                          create_read_items_for_chunk_list, infer_slice_area_by_rank,
                                          remove_redundant_plans)
from hyperparallel_words import (Distributed, LayoutObject, load_into, object_item, save_world, stored, tensor_item)

SEED = int(os.environ.get("SHW_SEED", "5"))
SOAK = os.environ.get("SHW_SOAK") == "1"
WORLDS = 20_000 if SOAK else 300
DTYPES = {"float32": 32, "bfloat16": 16, "int64": 64, "bool": 8}


def draws(count):
    """Numbered sources of randomness, and the text that reproduces each."""
    for number in range(count):
        yield random.Random(f"{SEED}/{number}"), f"SHW_SEED={SEED}, world {number}"


def world(draw):
    """Plans as lists of pieces: objects, whole tensors on some ranks, tiles of a grid each on some ranks."""
    plans = [[] for _ in range(draw.choice([1, 2, 3, 5, 9, 17, 40]))]
    ranks = range(len(plans))
    for number in range(draw.randint(0, 14)):
        name, dtype = f"e{number}", draw.choice(list(DTYPES))
        if draw.random() < 0.25:
            tiles, bits, shape = [((), ())], 0, ()
        else:
            counts = [draw.randint(1, 3) for _ in range(draw.randint(0, 3))]
            lengths = [draw.randint(1, 3) for _ in counts]
            shape, bits = tuple(c * n for c, n in zip(counts, lengths, strict=True)), DTYPES[dtype]
            tiles = [(tuple(i * n for i, n in zip(place, lengths, strict=True)), tuple(lengths))
                     for place in np.ndindex(*counts)]
        for offsets, sizes in tiles:
            for rank in draw.sample(ranks, draw.randint(1, len(plans))):
                plans[rank].append((oracle.Piece(name, bits, shape, offsets, sizes), dtype))
    for plan in plans:
        draw.shuffle(plan)
    return plans


def by_hand(plan):
    """A plan in data classes."""
    return SavePlan([tensor_item(p.name, p.offsets, p.sizes, p.shape, dtype) if p.dtype_bits else object_item(p.name)
                     for p, dtype in plan])


def pieces(plan):
    """(name, offsets) of the items of a plan."""
    return [(item.index.fqn, item.index.offset) for item in plan.items]


def test_merged_plans():
    for draw, shown in draws(WORLDS):
        plans = world(draw)
        bare, given = [[p for p, _ in plan] for plan in plans], [by_hand(plan) for plan in plans]
        rule = draw.choice(["exact", "lowest_rank", "all"])
        planner = StandardSavePlanner()
        planner.configure_planner({}, remove_redundancy=rule != "all", save_to_minimum_rank=rule == "lowest_rank")
        final, metadata = planner.build_global_plan(given)
        kept = bare if rule == "all" else oracle.without_redundancy(bare, rule == "lowest_rank")
        numbers, entries = oracle.numbered(kept)
        assert [pieces(p) for p in final] == [[(q.name, q.offsets) for q in plan] for plan in kept], shown
        assert [[item.index.index for item in p.items] for p in final] == numbers, shown
        found = {name: None if not hasattr(e, "chunks") else [(c.offsets, c.sizes) for c in e.chunks]
                 for name, e in metadata.state_dict_metadata.items()}
        assert list(found.items()) == list(entries.items()), shown
        if rule != "all":
            reduced = remove_redundant_plans(given, rule == "lowest_rank")
            assert [pieces(p) for p in reduced] == [pieces(p) for p in final], shown


def box(draw, shape):
    """A box inside a shape, empty ones too."""
    begins = tuple(draw.randint(0, extent) for extent in shape)
    return begins, tuple(draw.randint(0, extent - begin) for begin, extent in zip(begins, shape, strict=True))


def test_read_items():
    for draw, shown in draws(WORLDS):
        shape = tuple(draw.randint(0, 7) for _ in range(draw.randint(0, 4)))
        saved, wanted = ([box(draw, shape) for _ in range(draw.randint(0, 12))] for _ in range(2))
        entry = TensorStorageMetadata(TensorProperties("float32"), shape, [ChunkStorageMetadata(*row) for row in saved])
        expected = [
            ReadItem(LoadItemType.TENSOR, MetadataIndex("w", wanted[l][0], l), begin,
                     MetadataIndex("w", saved[s][0], s), chunk_begin, sizes)
            for l, s, begin, chunk_begin, sizes in oracle.reads(saved, wanted)
        ]
        found = create_read_items_for_chunk_list("w", entry, [ChunkStorageMetadata(*row) for row in wanted])
        assert found == expected, shown


def layout(draw, world_size, ndim):
    """A mesh of all ranks, and a tensor map with nested axes."""
    mesh, left = [], world_size
    while left > 1:
        mesh.append(draw.choice([d for d in range(2, left + 1) if left % d == 0]))
        left //= mesh[-1]
    mesh = mesh or [1]
    axes, entries = list(range(len(mesh))), []
    draw.shuffle(axes)
    for _ in range(ndim):
        taken = [axes.pop() for _ in range(draw.randint(0, len(axes)))]
        entries.append(tuple(taken) if len(taken) > 1 else taken[0] if taken else -1)
    ranks = list(range(world_size))
    draw.shuffle(ranks)
    return LayoutObject(tuple(mesh), tuple(entries), ranks)


def held(full, its_layout, rank, fill=None):
    """The part of a tensor that a rank holds."""
    position = its_layout.rank_list.index(rank)
    area = infer_slice_area_by_rank(its_layout.mesh_shape, its_layout.tensor_map, position, full.shape)
    local = np.array(full[tuple(slice(begin, end) for begin, end in area)])
    if fill is not None:
        local[...] = fill
    return Distributed(local, full.shape, its_layout)


@pytest.mark.parametrize("rule", [{}, {"save_to_minimum_rank": True}, {"remove_redundancy": False}], ids=str)
def test_values_pass_through_any_two_meshes(rule):
    for draw, shown in draws(WORLDS // 10):
        full = {f"t{k}": np.arange(np.prod(shape), dtype="f4").reshape(shape) for k in range(3)
                for shape in [tuple(draw.randint(0, 6) for _ in range(draw.randint(0, 3)))]}
        sizes = draw.choice([1, 2, 4, 6, 8]), draw.choice([1, 2, 3, 4, 12])
        layouts = [{name: layout(draw, size, array.ndim) for name, array in full.items()} for size in sizes]
        states = [{name: held(full[name], layouts[0][name], rank) for name in full} for rank in range(sizes[0])]
        planners, plans, metadata = save_world(states, **rule)
        values = stored(planners, plans)
        for rank in range(sizes[1]):
            target = {name: held(full[name], layouts[1][name], rank, -1) for name in full}
            load_into(target, metadata, values, rank)
            for name, array in full.items():
                expected = held(array, layouts[1][name], rank).local
                assert np.array_equal(target[name].local, expected), f"{shown} {name} rank {rank}"
