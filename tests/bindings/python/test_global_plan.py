# SPDX-License-Identifier: Apache-2.0
"""Global plans: one description for many ranks, equal to the merge of explicit plans, and what is refused."""
from array import array

import numpy as np
import pytest

import shardwright
import shardwright.errors as E
from shardwright import global_plan, planning
from shardwright.planning import EntryBatch

F32 = shardwright.dtype_number("float32")
GENERATION = "0123456789abcdef0123456789abcdef"
RANKS = 8


def batch(tensors, objects=(), **extra):
    """Entries from {name: shape} and [(name, size)], without boxes."""
    names, cuts, dtypes, shapes, shape_cuts, sizes = b"", array("Q", [0]), array("i"), array("q"), array("Q", [0]), array("Q")
    for name, shape, size in [*((n, s, None) for n, s in tensors.items()), *((n, (), size) for n, size in objects)]:
        names += name.encode()
        cuts.append(len(names))
        dtypes.append(F32 if size is None else 0)
        shapes.extend(shape)
        shape_cuts.append(len(shapes))
        sizes.append(size or 0)
    return EntryBatch(len(dtypes), names, cuts, dtypes, shapes=shapes, shape_offsets=shape_cuts, object_sizes=sizes, **extra)


def hybrid(shape=(16, 3)):
    """Descriptions of 2 replicas of 4 shards: a sharded weight, a plain scale, a step, a random state per rank."""
    layout = shardwright.Layout((2, 4), ["replicate", ("shard", 0)])
    return [global_plan.describe(batch({"weight": shape, "scale": (5,)}, [("step", 6), ("rng", 10 + rank)]),
                              [layout, None, None, None], rank=rank, world_size=RANKS, kinds=[("rng", "rank_local")])
            for rank in range(RANKS)]


def plan_of(locals_, **rules):
    digests = [each.digest for each in locals_]
    chosen = global_plan.representatives(digests)
    return global_plan.GlobalPlan(digests, [locals_[rank].description for rank in chosen],
                                 [each.part for each in locals_], **rules)


def test_ranks_of_a_mesh_describe_alike():
    locals_ = hybrid()
    assert len({each.digest for each in locals_}) == 1
    assert len({each.description for each in locals_}) == 1
    assert len({each.part for each in locals_}) == RANKS, "each has a random state of its own size"
    assert shardwright.Plan.from_bytes(locals_[0].description).kind == "description"
    assert shardwright.Plan.from_bytes(locals_[3].part).rank == 3


@pytest.mark.parametrize("owner", ["balanced", "lowest_rank"])
def test_owners_are_those_of_the_explicit_merge(owner):
    layout = shardwright.Layout((2, 4), ["replicate", ("shard", 0)])
    plan = plan_of([global_plan.describe(batch({"weight": (14, 3), "scale": (5,)}), [layout, None], rank=rank,
                                      world_size=RANKS) for rank in range(RANKS)], owner=owner)
    explicit = []
    for rank in range(RANKS):
        boxes = layout.boxes((14, 3), rank)
        offsets = array("q", [*(v for box in boxes for v in box[0]), 0])
        sizes = array("q", [*(v for box in boxes for v in box[1]), 5])
        entries = batch({"weight": (14, 3), "scale": (5,)}, box_ranges=array("Q", [0, len(boxes), len(boxes) + 1]),
                        box_offsets=offsets, box_sizes=sizes, kinds=array("i", [2, 1]))
        explicit.append(planning.describe(entries, rank=rank, world_size=RANKS))
    merged = planning.entries(planning.merge(explicit, owner=owner).plan)
    cuts = list(merged.box_ranges)
    for i, name in enumerate(merged.name_list()):
        assert list(plan.owners(name)) == list(merged.numbers[cuts[i]:cuts[i + 1]])


def test_write_lists_are_parts_of_the_expanded_plan():
    plan = plan_of(hybrid())
    expanded = plan.expand(GENERATION)
    assert shardwright.Plan.from_bytes(expanded.plan).kind == "merged_save"
    assert len(expanded.write_lists) == RANKS
    for rank, expected in enumerate(expanded.write_lists):
        alone = shardwright.Plan.from_bytes(plan.write_list(rank, GENERATION))
        wanted = shardwright.Plan.from_bytes(expected)
        assert alone.items() == wanted.items() and alone.rank == rank
        assert plan.rank_bytes[rank] == sum(item.nbytes for item in wanted.items())
    totals = plan.totals
    assert totals["ranks"] == RANKS and totals["descriptions"] == 1 and totals["items"] == 4 * RANKS
    assert totals["chunks"] == 5 and totals["objects"] == 1 + RANKS
    assert totals["bytes"] == sum(plan.rank_bytes) and totals["most_bytes"] == max(plan.rank_bytes)


def test_boxes_without_a_layout_travel_in_parts():
    locals_ = []
    for rank, (begin, count) in enumerate([(0, 3), (3, 1), (4, 6)]):
        entries = batch({"ragged": (10,)}, box_ranges=array("Q", [0, 1]), box_offsets=array("q", [begin]),
                        box_sizes=array("q", [count]))
        locals_.append(global_plan.describe(entries, rank=rank, world_size=3))
    assert len({each.digest for each in locals_}) == 1 and all(each.part for each in locals_)
    plan = plan_of(locals_)
    assert list(plan.owners("ragged")) == [0, 1, 2] and list(plan.rank_bytes) == [12, 4, 24]


def test_the_digest_is_the_plans_own():
    assert plan_of(hybrid()).digest == plan_of(hybrid()).digest
    assert plan_of(hybrid()).digest != plan_of(hybrid((17, 3))).digest
    assert plan_of(hybrid()).digest != plan_of(hybrid(), owner="lowest_rank").digest


def test_refusals_name_ranks():
    locals_ = hybrid()
    digests = [each.digest for each in locals_]
    with pytest.raises(E.InvalidArgumentError, match="part of rank 0"):
        global_plan.GlobalPlan(digests, [locals_[0].description])
    with pytest.raises(E.InvalidArgumentError, match="1 descriptions for 2 distinct"):
        global_plan.GlobalPlan([*digests[:-1], bytes(16)], [locals_[0].description])
    with pytest.raises(ValueError, match="16 bytes"):
        global_plan.representatives([b"short"])
    with pytest.raises(E.InvalidArgumentError, match="'all'"):
        plan_of(locals_, owner="all")
    with pytest.raises(E.NotFoundError, match="nothing"):
        plan_of(locals_).owners("nothing")
    with pytest.raises(E.InvalidArgumentError, match="rank 8 of 8"):
        plan_of(locals_).write_list(8, GENERATION)
    with pytest.raises(E.AlreadyExistsError, match="described twice"):
        twice = EntryBatch(2, b"aa", array("Q", [0, 1, 2]), array("i", [F32, F32]), shapes=array("q", [2, 2]),
                           shape_offsets=array("Q", [0, 1, 2]))
        global_plan.describe(twice, rank=0, world_size=1)


# ---- saves of states with layouts ----

ROWS = shardwright.Layout((2, 4), ["replicate", ("shard", 0)])


def rank_state(rank, *, told=True, boxes=False):
    """A state of hybrid shards: weight rows, a plain scale, a step and a random state per rank."""
    whole = np.arange(14 * 3, dtype=np.float32).reshape(14, 3)
    (offsets, sizes), = ROWS.boxes((14, 3), rank)
    local = whole[offsets[0]:offsets[0] + sizes[0]].copy()
    given = ((offsets, sizes),) if boxes or not told else ()
    weight = shardwright.Shard(local, (14, 3), given, ROWS if told else None, kind="sharded")
    return shardwright.State({"weight": weight, "scale": np.ones(5, np.float32), "step": 7,
                              "rng": bytes(rank)}, rank=rank)


def saved_by_hand(states, path, **options):
    """Saves by planners; kinds of the local plans, and the write lists without what a generation changes."""
    planners = [shardwright.SavePlanner(state, path=path, rank=rank, world_size=len(states), kind={"rng": "rank_local"},
                                        **options) for rank, state in enumerate(states)]
    locals_ = [planner.local_plan() for planner in planners]
    lists = planners[0].global_plan(locals_)
    plans = [planner.finish(part) for planner, part in zip(planners, lists, strict=True)]
    planners[0].commit([planner.execute() for planner in planners])
    return [shardwright.Plan.from_bytes(local).kind for local in locals_], [plan.items() for plan in plans]


def test_states_with_layouts_are_planned_by_them(tmp_path):
    told, items = saved_by_hand([rank_state(rank) for rank in range(RANKS)], tmp_path / "told")
    assert set(told) == {"local_save"}
    untold, expected = saved_by_hand([rank_state(rank, told=False) for rank in range(RANKS)], tmp_path / "untold")
    assert set(untold) == {"local_save"}
    assert items == expected
    both, _ = saved_by_hand([rank_state(rank, boxes=rank % 2 == 0) for rank in range(RANKS)], tmp_path / "both")
    assert set(both) == {"local_save"}
    for name in ("told", "untold", "both"):
        loaded = shardwright.load(tmp_path / name)
        np.testing.assert_array_equal(np.asarray(loaded["weight"]), np.arange(42, dtype=np.float32).reshape(14, 3))


def test_ranks_with_layouts_meet_ranks_without(tmp_path):
    kinds, _ = saved_by_hand([rank_state(rank, told=rank != 3) for rank in range(RANKS)], tmp_path / "c")
    assert set(kinds) == {"local_save"}
    loaded = shardwright.load(tmp_path / "c")
    np.testing.assert_array_equal(np.asarray(loaded["weight"]), np.arange(42, dtype=np.float32).reshape(14, 3))


def test_boxes_beside_a_layout_are_compared():
    weight = shardwright.Shard(np.ones((4, 3), np.float32), (14, 3), (((4, 0), (4, 3)),), ROWS)
    with pytest.raises(E.InvalidArgumentError, match=r"rank 0 holds \[4:8, 0:3\] by its boxes and \[0:4, 0:3\]"):
        shardwright.State({"weight": weight}, rank=0)


def test_layouts_that_contradict_each_other_are_named(tmp_path):
    columns = shardwright.Layout((8,), [("shard", 1)])
    states = [rank_state(rank) for rank in range(RANKS)]
    states[5] = shardwright.State({"weight": shardwright.Shard(np.ones((14, 1), np.float32), (14, 8), layout=columns)},
                                  rank=5)
    with pytest.raises(E.InvalidArgumentError, match=r"'weight' has shape .* on rank 0 and .* on rank 5"):
        saved_by_hand(states, tmp_path / "c")
