# SPDX-License-Identifier: Apache-2.0
"""Beside HyperParallel itself, where a copy of it is importable (it is on no package index: PYTHONPATH=FOLDER with
hyper_parallel in it). Its own save and load run with our planners, and both planners get equal input."""
import dataclasses
import importlib.util
import os
import random

import pytest
import ranks

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("hyper_parallel") is None:
    pytest.skip(reason="hyper_parallel is not importable; put a copy of it on PYTHONPATH", allow_module_level=True)
os.environ["HYPER_PARALLEL_PLATFORM"] = "torch"

from hyper_parallel.core.checkpoint import metadata as theirs
from hyper_parallel.core.checkpoint import planner as their_plans
from hyper_parallel.core.checkpoint import reshard as their_reshard
from hyper_parallel.core.checkpoint import standard_planner as their_planner
from hyper_parallel.core.checkpoint import util as their_functions
from shardwright import hyperparallel as ours
from shardwright.torch import hyperparallel as of_torch

SEED = int(os.environ.get("SHW_SEED", "20260305"))
WORLDS = 150
CASES = ("round_trip", "another_mesh", "its_own_checkpoints", "what_it_lost", "what_failed")
_launched = []


@pytest.mark.parametrize("case", CASES)
def test_its_own_save_and_load_with_our_planners(case, tmp_path_factory):
    if not _launched:
        _launched.append(ranks.launch(4, tmp_path_factory.mktemp("hyperparallel"), program="hyperparallel_rank.py"))
    outcomes, errors = _launched[0]
    assert outcomes.get(case) == ["ok"] * 4, "\n".join([*map(str, outcomes.get(case, ["it did not run"])), *errors])


def world(draw):
    """Items (name, dtype, shape, offsets, sizes) of up to 8 ranks (above, its choice among equals is CPython's set
    order). Shards tile their tensor, some on several ranks."""
    rank_count = draw.randint(1, 8)
    plans = [[] for _ in range(rank_count)]
    for number in range(draw.randint(1, 12)):
        name, kind = f"e{number}", draw.choice(["object", "replica", "shard", "own"])
        if kind == "object":
            for rank in draw.sample(range(rank_count), draw.randint(1, rank_count)):
                plans[rank].append((name, None, (), (), ()))
            continue
        parts = draw.randint(1, rank_count) if kind == "shard" else 1
        shape, dtype = (parts * draw.randint(1, 3), draw.randint(1, 4)), draw.choice(["float32", "bfloat16", "int64"])
        rows = shape[0] // parts
        for rank in range(rank_count) if kind != "own" else [draw.randrange(rank_count)]:
            plans[rank].append((name, f"torch.{dtype}", shape, (rows * (rank % parts), 0), (rows, shape[1])))
    return plans


def plan(rows, package, plans):
    """The same plan in the classes of either package."""
    items = []
    for name, dtype, shape, offsets, sizes in rows:
        if dtype is None:
            items.append(plans.WriteItem(package.MetadataIndex(name), plans.WriteItemType.BYTE_IO, bytes_io_data=1))
        else:
            items.append(plans.WriteItem(package.MetadataIndex(name, offsets), plans.WriteItemType.TENSOR, {
                "chunk": package.ChunkStorageMetadata(offsets, sizes), "properties": package.TensorProperties(dtype),
                "size": shape}))
    return plans.SavePlan(items)


@pytest.mark.parametrize("number", range(WORLDS))
def test_equal_plans_for_equal_worlds(number):
    draw = random.Random(SEED * 1000 + number)
    rows = world(draw)
    for remove, lowest in ((True, False), (True, True), (False, False)):
        planners = ours.StandardSavePlanner(), their_planner.StandardSavePlanner()
        given = [plan(row, ours, ours) for row in rows], [plan(row, theirs, their_plans) for row in rows]
        for planner in planners:
            planner.configure_planner({}, remove_redundancy=remove, save_to_minimum_rank=lowest)
        (our_final, our_metadata), (their_final, their_metadata) = (
            planner.build_global_plan(plans) for planner, plans in zip(planners, given, strict=True))
        shown = f"SHW_SEED={SEED} world {number}"
        assert [list(p.items) for p in our_final] == [p.items for p in their_final], shown
        assert list(our_metadata.state_dict_metadata.items()) == list(their_metadata.state_dict_metadata.items()), shown
        if remove and len(rows) > 1:
            assert [list(p.items) for p in ours.remove_redundant_plans(given[0], lowest)] == [
                p.items for p in their_functions.remove_redundant_plans(given[1], lowest)], shown


@pytest.mark.parametrize("number", range(WORLDS))
def test_equal_read_items_for_equal_chunks(number):
    draw = random.Random(SEED * 2000 + number)
    ndim = draw.randint(0, 3)
    shape = tuple(draw.randint(1, 6) for _ in range(ndim))

    def box():
        begins = tuple(draw.randint(0, extent) for extent in shape)
        return begins, tuple(draw.randint(0, extent - begin) for begin, extent in zip(begins, shape, strict=True))

    saved, wanted = [box() for _ in range(draw.randint(0, 6))], [box() for _ in range(draw.randint(0, 4))]

    def items(package, function):
        chunks = [[package.ChunkStorageMetadata(*row) for row in rows] for rows in (saved, wanted)]
        return function("w", package.TensorStorageMetadata(package.TensorProperties("torch.float32"), shape, chunks[0]),
                        chunks[1])

    assert items(ours, ours.create_read_items_for_chunk_list) == items(
        theirs, their_planner.create_read_items_for_chunk_list), f"SHW_SEED={SEED} case {number}"


@pytest.mark.parametrize("number", range(WORLDS))
def test_equal_areas_for_lengths_that_divide(number):
    draw = random.Random(SEED * 3000 + number)
    mesh = tuple(draw.randint(1, 4) for _ in range(draw.randint(1, 4)))
    axes, entries = list(range(len(mesh))), []
    draw.shuffle(axes)
    for _ in range(draw.randint(0, 3)):
        taken = [axes.pop() for _ in range(min(len(axes), draw.randint(0, 2)))]
        entries.append(tuple(taken) if len(taken) > 1 else taken[0] if taken else -1)
    parts = [1 if entry == -1 else eval_parts(mesh, entry) for entry in entries]
    shape = tuple(count * draw.randint(0, 3) for count in parts)
    for rank in range(eval_parts(mesh, tuple(range(len(mesh))))):
        arguments = mesh, tuple(entries), rank, shape
        assert ours.infer_slice_area_by_rank(*arguments) == their_reshard.infer_slice_area_by_rank(*arguments)
        assert ours.rank_id_to_dev_id_list(mesh, rank) == their_reshard.rank_id_to_dev_id_list(mesh, rank)


def eval_parts(mesh, entry):
    """Parts into which an entry of a map cuts its dimension."""
    count = 1
    for axis in (entry,) if isinstance(entry, int) else entry:
        count *= mesh[-axis - 1]
    return count


def test_its_choice_among_equals_is_the_order_of_a_set():
    """The original gives {7, 8} to 8 and {3, 7, 11, 15} to 11; ours goes to the lowest rank."""
    for holders, chosen in (({7, 8}, 8), ({3, 7, 11, 15}, 11), ({0, 8}, 0)):
        rows = [[("w", "torch.float32", (2,), (0,), (2,))] if rank in holders else [] for rank in range(16)]
        found = their_functions.remove_redundant_plans([plan(row, theirs, their_plans) for row in rows])
        assert [rank for rank, p in enumerate(found) if p.items] == [chosen]
        mine = ours.remove_redundant_plans([plan(row, ours, ours) for row in rows])
        assert [rank for rank, p in enumerate(mine) if p.items] == [min(holders)]


def test_what_it_lets_pass():
    """K4, K5: overlaps, holes, chunks outside, and duplicates that differ are written by the original."""
    def rows(*items):
        return [[("w", dtype, shape, offsets, sizes)] for dtype, shape, offsets, sizes in items]

    f4, bf16 = "torch.float32", "torch.bfloat16"
    for case in (rows((f4, (6,), (0,), (4,)), (f4, (6,), (3,), (3,))),
                 rows((f4, (6,), (0,), (2,)), (f4, (6,), (3,), (3,))),
                 rows((f4, (6,), (0,), (4,)), (f4, (6,), (4,), (3,))),
                 rows((f4, (4,), (0,), (4,)), (f4, (4,), (0,), (2,))),
                 rows((f4, (4,), (0,), (4,)), (bf16, (4,), (0,), (4,)))):
        their_planner.StandardSavePlanner().build_global_plan([plan(row, theirs, their_plans) for row in case])
        with pytest.raises(ValueError, match="w"):
            ours.StandardSavePlanner().build_global_plan([plan(row, ours, ours) for row in case])


def test_its_sizes_are_guesses():
    """K19: 4 bytes for each int8; the original's text search knows no complex numbers either."""
    for dtype, guess, size in (("torch.int8", 40, 10), ("torch.complex64", 40, 80), ("torch.float8_e4m3fn", 40, 10)):
        row = ("w", dtype, (10,), (0,), (10,))
        assert plan([row], theirs, their_plans).items[0].tensor_storage_size() == guess
        assert plan([row], ours, ours).items[0].tensor_storage_size() == size


def fields(cls):
    """Names and defaults of a data class."""
    missing = dataclasses.MISSING
    return [(f.name, f.default if f.default_factory is missing else f.default_factory())
            for f in dataclasses.fields(cls)]


def test_names_of_its_module():
    for name in ("StandardSavePlanner", "StandardLoadPlanner", "create_read_items_for_chunk_list"):
        assert hasattr(their_planner, name) and hasattr(of_torch, name)
    for package, names in ((theirs, ("MetadataIndex", "ChunkStorageMetadata", "TensorProperties",
                                     "BytesStorageMetadata", "TensorStorageMetadata", "Metadata")),
                           (their_plans, ("WriteItem", "ReadItem", "SavePlan", "LoadPlan"))):
        for name in names:
            assert fields(getattr(package, name)) == fields(getattr(ours, name)), name
