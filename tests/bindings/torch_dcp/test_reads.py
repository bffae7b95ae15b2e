# SPDX-License-Identifier: Apache-2.0
"""Reads of a load plan: the engine's are torch's in order and content, arrays are items when somebody looks, and what the
engine cannot hold goes item by item."""
import dataclasses
import itertools
import os
import pickle
import random

import pytest
import torch
import torch.distributed.checkpoint.default_planner as original
from items import chunk, stored
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from worlds import grid, placed

import shardwright
import shardwright.torch.dcp.planner as ours
from shardwright.torch._library import native
from shardwright.torch.dcp.planner import _boxes, _load, _read_items

SEED = int(os.environ.get("SHW_SEED", random.SystemRandom().randrange(2**40)))
BYTES = BytesStorageMetadata()


def hints(items):
    return [(i.dest_index.fqn, i.dest_index.index, i.storage_index.index) for i in items]


def same(mine, theirs):
    return list(mine) == list(theirs) and hints(mine) == hints(theirs)


def boxes_with_empty_ones(shape, rng):
    """A grid in any order, with boxes of no elements anywhere in the tensor."""
    boxes = grid(shape, rng)
    for _ in range(rng.randint(0, 3)):
        offset = tuple(rng.randint(0, extent) for extent in shape)
        boxes.append((offset, tuple(rng.choice([0, rng.randint(0, e - o)]) for o, e in zip(offset, shape, strict=True))))
    return rng.sample(boxes, len(boxes))


@pytest.mark.parametrize("by", ["engine", "pairs"])
def test_boxes_without_elements_are_read_as_in_torch(by, monkeypatch):
    monkeypatch.setattr(_boxes, "ENGINE_BOXES_MIN", 0 if by == "engine" else 2**60)
    for number in range(1000):
        rng = random.Random(SEED + number)
        shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
        entry = stored(shape, *boxes_with_empty_ones(shape, rng))
        wanted = [chunk(*box) for box in boxes_with_empty_ones(shape, rng)]
        theirs = create_read_items_for_chunk_list("w", entry, wanted)
        assert same(ours.create_read_items_for_chunk_list("w", entry, wanted), theirs), f"{SEED + number}"


def random_state(rng):
    """What one rank wants, and the entries of a checkpoint that has it."""
    state, entries = {}, {}
    for number in range(rng.randint(0, 9)):
        name, kind = f"n{number}", rng.random()
        shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(0, 3)))
        if kind < 0.2:
            state[name], entries[name] = rng.choice([1, "x", torch.ones(2), None]), BYTES
            continue
        boxes = grid(shape, rng) if shape else [((), ())]
        entries[name] = stored(shape, *rng.sample(boxes, len(boxes)))
        state[name] = placed(shape, grid(shape, rng)) if shape and kind < 0.6 else torch.empty(shape, device="meta")
    return state, Metadata(entries)


@pytest.mark.parametrize("batch", [1, 5, 2**18])
def test_plans_of_whole_states_are_torchs(batch, monkeypatch):
    monkeypatch.setattr(_load, "_BATCH_CHUNKS_MAX", batch)
    for number in range(300):
        state, metadata = random_state(random.Random(SEED + number))
        theirs = original.create_default_local_load_plan(state, metadata)
        mine = ours.create_default_local_load_plan(state, metadata)
        assert isinstance(mine.items, _read_items.PackedReads) and len(mine.items) == len(theirs.items)
        again = pickle.loads(pickle.dumps(mine))
        assert again.items.data == mine.items.data and bool(again.items) is bool(theirs.items)
        assert same(mine.items, theirs.items) and same(again.items, theirs.items), f"{SEED + number}"


def test_items_are_torchs_own_and_pickled_as_arrays_again():
    state, entries = {"w": torch.ones(8, 2), "o": 1}, Metadata({"w": stored([8, 2], ([0, 0], [4, 2]), ([4, 0], [4, 2])), "o": BYTES})
    items = ours.create_default_local_load_plan(state, entries).items
    assert [type(item) for item in items] == [ReadItem] * 3 and type(items[0].dest_index) is MetadataIndex
    assert type(items[0].lengths) is torch.Size and items[2].type is LoadItemType.BYTE_IO
    assert pickle.dumps(items[0].storage_index) == pickle.dumps(original.create_default_local_load_plan(
        state, entries).items[0].storage_index)
    items.append(dataclasses.replace(items[0], lengths=torch.Size([1, 1])))
    again = pickle.loads(pickle.dumps(items))
    assert type(again) is _read_items.PackedReads and again == items and len(again) == 4


class OtherItem(ReadItem):
    pass


@pytest.mark.parametrize("change", [
    lambda i: None, lambda i: OtherItem(**vars(i)), lambda i: dataclasses.replace(i, lengths=[1, 1]),
    lambda i: dataclasses.replace(i, type="read"), lambda i: dataclasses.replace(i, dest_offsets=torch.Size([0])),
    lambda i: dataclasses.replace(i, dest_index=MetadataIndex("w", [0, 0], -1)),
    lambda i: dataclasses.replace(i, dest_index="w"), lambda i: dataclasses.replace(i, dest_index=MetadataIndex(5))])
def test_items_that_arrays_cannot_hold_stay_objects(change):
    entries = Metadata({"w": stored([8, 2], ([0, 0], [8, 2]))})
    items = ours.create_default_local_load_plan({"w": torch.ones(8, 2)}, entries).items
    items[0] = change(items[0])
    assert _read_items.packed(items) is None
    again = pickle.loads(pickle.dumps(items))
    assert type(again) is list and again == items


def test_damaged_reads_are_refused():
    entries = Metadata({"w": stored([8, 2], ([0, 0], [4, 2]), ([4, 0], [4, 2])), "o": BYTES})
    items = ours.create_default_local_load_plan({"w": torch.ones(8, 2), "o": 1}, entries).items
    ((names, count, values),) = items.data
    refused = 0
    for place in range(len(values) // 8):
        for number in (-2, -1, 1, 2, 65, 2**62):
            damaged = values[:8 * place] + number.to_bytes(8, "little", signed=True) + values[8 * place + 8:]
            try:
                assert len(native.reads_decode((names, count, damaged))) == count
            except shardwright.ShardwrightError:
                refused += 1
    assert refused > 50
    for broken in ((names, count + 1, values), (names, count - 1, values), (names, -1, values), (names, 2**40, values),
                   ([], count, values), (names, count, values[:-1]), (names, count, values[:-8]), (names, count, b"")):
        with pytest.raises(shardwright.DataLossError):
            native.reads_decode(broken)


OUTSIDE = {"a chunk leaves its tensor": (stored([4], ([0], [2]), ([2], [4])), torch.empty(4)),
           "begins below it": (stored([4], ([-1], [3]), ([2], [2])), torch.empty(4)),
           "sizes below zero": (stored([4], ([0], [4]), ([2], [-1])), torch.empty(4))}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_the_engine_cannot_hold_is_read_item_by_item(case):
    entry, value = OUTSIDE[case]
    state, metadata = {"o": 1, "w": value, "x": torch.empty(3)}, Metadata({"o": BYTES, "w": entry, "x": stored([3], ([0], [3]))})
    rows = list(_load._rows_of(state, metadata, True))
    assert native.reads_plan(rows) is None
    assert same(ours.create_default_local_load_plan(state, metadata, strict=False).items,
                original.create_default_local_load_plan(state, metadata).items)


def test_names_that_are_no_text_are_read_item_by_item():
    entries = {"\ud800": stored([2], ([0], [2])), 7: BYTES}
    state = {"\ud800": torch.ones(2), 7: 1}
    assert same(ours.create_default_local_load_plan(state, Metadata(entries)).items,
                original.create_default_local_load_plan(state, Metadata(entries)).items)


def without_engine(monkeypatch, by):
    if by == "pairs":
        monkeypatch.setattr(native, "reads_plan", lambda rows: None)
        monkeypatch.setattr(native, "reads_prove", lambda rows: None)


HOLES = [(stored([4], ([0], [3])), torch.empty(4), "3 of the 4 elements of w at offsets \\(0,\\), sizes \\(4,\\)"),
         (stored([4]), torch.empty(4), "0 of the 4 elements"), (stored([]), torch.tensor(1.0), "0 of the 1 elements"),
         (stored([4], ([0], [1]), ([3], [1])), placed((4,), [((3,), (1,)), ((0,), (2,))]), "1 of the 2 elements of w at offsets \\(0,\\)")]


@pytest.mark.parametrize("by", ["engine", "pairs"])
@pytest.mark.parametrize(("entry", "value", "text"), HOLES)
def test_holes_are_named(entry, value, text, by, monkeypatch):
    without_engine(monkeypatch, by)
    state, metadata = {"x": torch.empty(3), "w": value}, Metadata({"x": stored([3], ([0], [3])), "w": entry})
    original.create_default_local_load_plan(state, metadata)
    with pytest.raises(ours.UnfilledError, match=text):
        ours.create_default_local_load_plan(state, metadata)
    partial = ours.create_default_local_load_plan(state, metadata, strict=False)
    assert same(partial.items, original.create_default_local_load_plan(state, metadata, strict=False).items)


REPEATED = [(stored([8], ([0], [4]), ([0], [4])), torch.empty(8)),
            (stored([8], ([0], [5]), ([3], [5])), torch.empty(8)),
            (stored([8], ([0], [4]), ([0], [4]), ([5], [3])), torch.empty(8)),
            (stored([8], ([0], [4]), ([0], [6]), ([6], [2])), placed((8,), [((4,), (4,)), ((0,), (4,))])),
            (stored([4, 4], ([0, 0], [2, 4]), ([0, 0], [4, 2]), ([0, 0], [2, 2])), torch.empty(4, 4))]


@pytest.mark.parametrize("by", ["engine", "pairs"])
@pytest.mark.parametrize(("entry", "value"), REPEATED)
def test_chunks_that_share_elements_prove_nothing_by_their_volume(entry, value, by, monkeypatch):
    without_engine(monkeypatch, by)
    state, metadata = {"x": torch.empty(3), "w": value}, Metadata({"x": stored([3], ([0], [3])), "w": entry})
    assert original.create_default_local_load_plan(state, metadata).items, "torch reads what there is"
    with pytest.raises(ours.UnfilledError) as caught:
        ours.create_default_local_load_plan(state, metadata)
    assert caught.value.details["tensor"] == "w"
    with pytest.raises(ours.UnfilledError):
        _load.create_read_items("w", entry, value, strict=True)
    partial = ours.create_default_local_load_plan(state, metadata, strict=False)
    assert same(partial.items, original.create_default_local_load_plan(state, metadata, strict=False).items)


COPIES = [(stored([8], ([0], [4]), ([4], [4]), ([0], [4])), torch.empty(8)),
          (stored([], ([], []), ([], [])), torch.tensor(1.0)),
          (stored([8], ([0], [6]), ([4], [4])), placed((8,), [((0,), (4,))])),
          (stored([4, 4], *[([a, b], [2, 2]) for b in (2, 0) for a in (2, 0)]), torch.empty(4, 4))]


@pytest.mark.parametrize("by", ["engine", "pairs"])
@pytest.mark.parametrize(("entry", "value"), COPIES)
def test_equal_chunks_and_overlaps_that_nobody_wants_are_read_as_in_torch(entry, value, by, monkeypatch):
    without_engine(monkeypatch, by)
    state, metadata = {"w": value}, Metadata({"w": entry})
    assert same(ours.create_default_local_load_plan(state, metadata).items,
                original.create_default_local_load_plan(state, metadata).items)


def times_held(entry, value):
    """The lowest and the highest number of distinct chunks that hold one wanted element."""
    held = torch.zeros(tuple(entry.size), dtype=torch.int64)
    for offset, size in {(tuple(c.offsets), tuple(c.sizes)) for c in entry.chunks}:
        held[tuple(slice(o, o + n) for o, n in zip(offset, size, strict=True))] += 1
    boxes = zip(value.global_offsets, value.local_sizes, strict=True)
    wanted = torch.cat([held[tuple(slice(o, o + n) for o, n in zip(*box, strict=True))].flatten() for box in boxes])
    return (int(wanted.min()), int(wanted.max())) if len(wanted) else (1, 1)


@pytest.mark.parametrize("by", ["engine", "pairs"])
def test_what_is_loaded_is_held_once(by, monkeypatch):
    without_engine(monkeypatch, by)
    refused = 0
    for number in range(1000):
        rng = random.Random(SEED + number)
        shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 3)))
        boxes = [*grid(shape, rng), *rng.choice([[], grid(shape, rng), boxes_with_empty_ones(shape, rng)])]
        boxes = rng.sample(boxes, len(boxes) - (rng.random() < 0.3))
        entry, value = stored(shape, *boxes, *boxes[:rng.randint(0, 2)]), placed(shape, [rng.choice(grid(shape, rng))])
        good = times_held(entry, value) == (1, 1)
        try:
            ours.create_default_local_load_plan({"w": value}, Metadata({"w": entry}))
            assert good, f"{SEED + number}"
        except ours.UnfilledError:
            assert not good, f"{SEED + number}"
            refused += 1
    assert 100 < refused < 900


GRIDS = [([8], [1], [], []), ([9, 6], [3, 2], [], []), ([6, 9], [2, 3], [], []), ([4, 6, 8], [2, 3, 2], [], []),
         ([8, 6, 4], [2, 3, 2], [], []), ([9, 6], [3, 2], [([0, 0], [3, 2])], [0]), ([8], [1], [([1], [2])], [0])]


@pytest.mark.parametrize(("shape", "size", "more", "doubtful"), GRIDS)
def test_the_parts_of_a_grid_need_no_further_proof(shape, size, more, doubtful):
    cells = itertools.product(*[range(0, extent, step) for extent, step in zip(shape, size, strict=True)])
    entry = stored(shape, *[(cell, size) for cell in cells], *more)
    assert native.reads_plan([("w", entry.size, entry.chunks, None)])[4] == doubtful


def test_rows_of_a_wrong_kind_are_refused():
    for rows in (5, [5], [("w",)], [("w", torch.Size([1]), [], 5)], [("w", torch.Size([1]), [object()], None)]):
        try:
            assert native.reads_plan(rows) is None
        except (TypeError, AttributeError):
            continue
    for call in (native.reads_encode, native.reads_decode):
        with pytest.raises(TypeError):
            call(5)
