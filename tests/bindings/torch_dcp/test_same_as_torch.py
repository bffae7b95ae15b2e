# SPDX-License-Identifier: Apache-2.0
"""Worlds of random tensors planned by torch's planner and by ours: equal plans, metadata, chunk order, hints, errors."""
import os
import random

import pytest
import torch
import torch.distributed.checkpoint.default_planner as original
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from worlds import difference, grid, placed, plain, planned, random_world

import shardwright.torch.dcp.planner as ours

SOAK = os.environ.get("SHW_SOAK") == "1"
WORLDS = 100_000 if SOAK else 1000
SEED = int(os.environ.get("SHW_SEED", random.SystemRandom().randrange(2**40)))


@pytest.mark.parametrize("lowest", [False, True])
def test_random_worlds_are_planned_alike(lowest):
    for number in range(WORLDS if not lowest else WORLDS // 3):
        seed = SEED + number
        states = random_world(seed)
        found = difference(states, dedup_save_to_lowest_rank=lowest)
        assert found is None, f"SHW_SEED={seed}: {found}"


def test_plans_that_were_touched_are_planned_alike():
    for number in range(WORLDS // 3):
        seed = SEED + number
        rng = random.Random(seed)
        states = random_world(seed)
        touched = [rank for rank in range(len(states)) if rng.random() < 0.5]
        found = difference(states, touched)
        assert found is None, f"SHW_SEED={seed}: {found}"


def test_worlds_without_nesting_are_planned_alike():
    for number in range(WORLDS // 10):
        found = difference(random_world(SEED + number), flatten_state_dict=False)
        assert found is None, f"SHW_SEED={SEED + number}: {found}"


def chunks_of(boxes):
    return [ChunkStorageMetadata(torch.Size(offset), torch.Size(size)) for offset, size in boxes]


def test_random_boxes_are_read_alike_and_in_torchs_order():
    for number in range(WORLDS):
        rng = random.Random(SEED + number)
        shape = tuple(rng.randint(1, 12) for _ in range(rng.randint(0, 3)))
        saved = chunks_of(rng.sample(found := grid(shape, rng), len(found)))
        wanted = chunks_of(rng.sample(found := grid(shape, rng), rng.randint(0, len(found))))
        stored = TensorStorageMetadata(TensorProperties(), torch.Size(shape), saved)
        theirs = create_read_items_for_chunk_list("w", stored, wanted)
        mine = ours.create_read_items_for_chunk_list("w", stored, wanted)
        hints = [[(i.dest_index.index, i.storage_index.index) for i in items] for items in (theirs, mine)]
        assert mine == theirs and hints[0] == hints[1], f"SHW_SEED={SEED + number}"


def test_random_states_are_read_alike():
    for number in range(WORLDS // 3):
        states = random_world(SEED + number)
        _, plans, metadata = planned(original.DefaultSavePlanner, states)
        if metadata is None:
            continue
        rng = random.Random(SEED + number)
        wanted = {name: placed(tuple(entry.size), grid(entry.size, rng), entry.properties.dtype)
                  if isinstance(entry, TensorStorageMetadata) and len(entry.size) and min(entry.size) else plain(entry.size)
                  if isinstance(entry, TensorStorageMetadata) else 0
                  for name, entry in metadata.state_dict_metadata.items()}
        theirs = original.create_default_local_load_plan(wanted, metadata, strict=False)
        mine = ours.create_default_local_load_plan(wanted, metadata, strict=False)
        assert mine == theirs, f"SHW_SEED={SEED + number}"


def test_metadata_of_a_state_without_ranks_is_torchs():
    state = {"w": plain((3, 4)), "p": placed((8, 2), [((0, 0), (3, 2)), ((5, 0), (3, 2))]), "step": 3}
    assert ours._create_default_local_metadata(state) == original._create_default_local_metadata(state)


def test_a_metadata_is_a_metadata_for_torchs_own_checks():
    states = [{"w": placed((4,), [((0,), (2,))])}, {"w": placed((4,), [((2,), (2,))])}]
    _, plans, metadata = planned(ours.DefaultSavePlanner, states)
    assert type(metadata) is Metadata and original._validate_global_plan(plans, metadata) == []
