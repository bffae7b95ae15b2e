# SPDX-License-Identifier: Apache-2.0
"""Described jobs and their prices in Python."""
import numpy
import pytest

import shardwright
from shardwright import World

HALVES = {"schema": 1, "meshes": {"m": {"axes": {"dp": 2}}},
          "tensors": [{"name": "w", "dtype": "float32", "shape": [8, 4], "placements": {"dp": "Shard(0)"}}],
          "objects": [{"name": "step", "bytes": 8}]}


def test_a_save_is_priced_and_planned():
    world = World(HALVES)
    assert world.rank_count == 2
    price = world.price_save(rank_bytes_per_second=1000)
    assert price["per_rank"]["writes"] == [2, 1] and price["stored"]["bytes"] == 136
    assert price["time"]["seconds"] == price["bytes"]["max"] / 1000
    plan = world.save_plan(owner="lowest_rank")
    assert plan.kind == "merged_save" and {chunk["writer"] for chunk in plan.to_dict()["chunks"]} == {0, 1}


def test_descriptions_are_written_back():
    world = World(HALVES)
    assert World(world.description()).description() == world.description()


def test_a_checkpoint_is_priced_on_another_mesh(tmp_path):
    shardwright.save({"w": numpy.zeros((8, 4), "float32"), "step": 3}, tmp_path / "c")
    target = World({"schema": 1, "meshes": {"m": {"axes": {"tp": 4}}},
                    "rules": [{"match": "*", "placements": {"tp": "Shard(0)"}}]})
    with shardwright.open(tmp_path / "c") as checkpoint:
        stored = World.of_checkpoint(checkpoint)
    price = stored.price_load(stored.lay_out(target))
    assert price["ranks"] == 4 and price["command"] == "load"
    # Each rank needs a quarter of 128 bytes, whose one digest covers all of them.
    assert price["over_bytes"]["total"] == 4 * 96
    assert stored.price_load()["over_bytes"]["total"] == 0


def test_the_load_plan_of_each_rank_is_given():
    world = World(HALVES)
    target = World({"schema": 1, "ranks": 3, "rules": [{"match": "*"}]})
    plans = world.load_plans(world.lay_out(target))
    assert [plan.kind for plan in plans] == ["load"] * 3
    for rank, plan in enumerate(plans):
        shown = plan.to_dict()
        assert shown["rank"] == rank and shown["loaded"] == ["w", "step"]
        assert [read["offsets"] for read in shown["reads"]] == [[0, 0], [4, 0]]


def test_what_is_wrong_says_where():
    with pytest.raises(shardwright.InvalidArgumentError, match="line 2, column 2: 'mesh' is no key") as caught:
        World('{"schema": 1,\n "mesh": {}}')
    assert caught.value.details["line"] == "2" and caught.value.details["column"] == "2"
    with pytest.raises(shardwright.NotFoundError, match="'v' is wanted and not stored"):
        other = {**HALVES, "tensors": [{**HALVES["tensors"][0], "name": "v"}]}
        World(HALVES).lay_out(World(other))
    with pytest.raises(shardwright.UnimplementedError):
        World({"schema": 2})
    with pytest.raises(shardwright.InvalidArgumentError, match="owner"):
        World(HALVES).price_save(owner="nobody")
