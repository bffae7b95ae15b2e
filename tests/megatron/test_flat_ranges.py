# SPDX-License-Identifier: Apache-2.0
"""Flattened ranges: boxes of a range, form on disk, overlapping fragments, runs; compared element by element."""
import math
import random

import pytest
import torch
from flat_entries import flat_entry
from shardwright.layout import overlapping_parts
from shardwright.torch.megatron import ShardedTensor
from shardwright.torch.megatron._flat_ranges import row_major_boxes, runs_of_overlap

# fragments, position, local shape, range -> entry size, chunk offset, chunk size
ENTRIES = [
    ((1, 2), (0, 0), (4, 3), slice(0, 12), (1, 2, 12), (0, 0, 0), (1, 1, 12)),
    ((1, 2), (0, 1), (4, 3), slice(0, 12), (1, 2, 12), (0, 1, 0), (1, 1, 12)),
    ((1, 1), (0, 0), (4, 6), slice(0, 10), (1, 1, 24), (0, 0, 0), (1, 1, 10)),
    ((1, 1), (0, 0), (4, 6), slice(10, 24), (1, 1, 24), (0, 0, 10), (1, 1, 14)),
    ((1,), (0,), (6,), slice(3, 6), (1, 6), (0, 3), (1, 3)),
    ((2, 1, 1), (1, 0, 0), (2, 3), slice(0, 6), (2, 1, 1, 6), (1, 0, 0, 0), (1, 1, 1, 6)),
]


@pytest.mark.parametrize(("fragments", "position", "local", "flat", "size", "offset", "extents"), ENTRIES)
def test_the_form_on_disk(fragments, position, local, flat, size, offset, extents):
    assert flat_entry(fragments, position, local, flat) == (size, (offset, extents))


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 4), (1, 4, 1, 3), (3, 0, 2)])
def test_a_range_is_few_boxes_that_hold_its_elements_in_order(shape):
    count = math.prod(shape)
    whole = torch.arange(count).reshape(shape)
    for start in range(count + 1):
        for stop in range(start, count + 1):
            boxes = row_major_boxes(shape, start, stop)
            assert len(boxes) <= max(2 * len(shape) - 1, 1)
            found = []
            for box in boxes:
                assert box.start == len(found)
                found += whole[tuple(slice(o, o + s) for o, s in zip(box.offsets, box.sizes))].reshape(-1).tolist()
            assert found == list(range(start, stop))


def test_overlapping_fragments_are_exact_integers():
    assert list(overlapping_parts(7, 25, 24)) == [6]  # floating point adds a fragment that does not exist
    for stored in range(1, 30):
        for wanted in range(1, 30):
            for position in range(wanted):
                exact = [s for s in range(stored) if s * wanted < (position + 1) * stored and (s + 1) * wanted > position * stored]
                assert list(overlapping_parts(stored, wanted, position)) == exact


def test_runs_move_exactly_the_shared_elements():
    random.seed(7)
    for _ in range(300):
        shape = [random.randint(1, 5) for _ in range(random.randint(1, 3))]
        whole = torch.arange(math.prod(shape)).reshape(shape)
        boxes = []
        for _ in range(2):
            offset = [random.randrange(extent) for extent in shape]
            boxes.append((offset, [random.randint(0, extent - o) for extent, o in zip(shape, offset)]))
        stored, wanted = (whole[tuple(slice(o, o + s) for o, s in zip(*box))].reshape(-1) for box in boxes)
        start = random.randint(0, wanted.numel())
        kept = slice(start, random.randint(start, wanted.numel()))
        target = torch.full((kept.stop - kept.start,), -1)
        for run in runs_of_overlap(*boxes[0], *boxes[1], kept):
            assert run.length > 0 and (target[run.wanted:run.wanted + run.length] == -1).all()
            target[run.wanted:run.wanted + run.length] = stored[run.stored:run.stored + run.length]
        both = set(stored.tolist())
        assert target.tolist() == [value if value in both else -1 for value in wanted[kept].tolist()]


def test_whole_inner_axes_make_one_run():
    assert len(list(runs_of_overlap((0, 0, 0), (4, 3, 2), (1, 0, 0), (2, 3, 2)))) == 1
    assert len(list(runs_of_overlap((0, 0), (4, 6), (0, 3), (4, 3)))) == 4


def test_flattened_descriptors_keep_their_numbers():
    made = ShardedTensor.from_rank_offsets_flat("k", torch.ones(10), (4, 3), (1, 1, 2), flattened_range=slice(1, 11))
    assert (made.global_shape, made.global_offset, made.axis_fragmentations) == ((4, 6), (0, 3), (1, 2))
