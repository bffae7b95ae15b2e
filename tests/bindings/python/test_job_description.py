# SPDX-License-Identifier: Apache-2.0
"""Described jobs in Python, and what their saves and loads would cost."""
import numpy
import pytest

import shardwright
from shardwright import JobDescription

HALVES = {"schema": 1, "meshes": {"m": {"axes": {"dp": 2}}},
          "tensors": [{"name": "w", "dtype": "float32", "shape": [8, 4], "placements": {"dp": "Shard(0)"}}],
          "objects": [{"name": "step", "bytes": 8}]}


def test_a_save_is_estimated_and_planned():
    job = JobDescription(HALVES)
    assert job.rank_count == 2
    estimate = job.estimate_save(rank_bytes_per_second=1000)
    assert estimate["per_rank"]["writes"] == [2, 1] and estimate["stored"]["bytes"] == 136
    assert estimate["time"]["seconds"] == estimate["bytes"]["max"] / 1000
    assert "chunk_list" not in estimate["tensors"][0]
    assert job.estimate_save(chunks=True)["tensors"][0]["chunk_list"] == {
        "dims": [0], "offsets": [[0, 4]], "sizes": [[4, 4]], "ranks": [0, 1], "holders": [1, 1]}
    plan = job.save_plan(owner="lowest_rank")
    assert plan.kind == "merged_save" and {chunk["writer"] for chunk in plan.to_dict()["chunks"]} == {0, 1}


def test_descriptions_are_written_back():
    job = JobDescription(HALVES)
    assert JobDescription(job.to_dict()).to_dict() == job.to_dict()


def test_a_checkpoint_is_estimated_on_another_mesh(tmp_path):
    shardwright.save({"w": numpy.zeros((8, 4), "float32"), "step": 3}, tmp_path / "c")
    target = JobDescription({"schema": 1, "meshes": {"m": {"axes": {"tp": 4}}},
                    "rules": [{"match": "*", "placements": {"tp": "Shard(0)"}}]})
    with shardwright.open(tmp_path / "c") as checkpoint:
        stored = JobDescription.of_checkpoint(checkpoint)
    estimate = stored.estimate_load(stored.lay_out(target))
    assert estimate["ranks"] == 4 and estimate["command"] == "load"
    # Each rank needs a quarter of 128 bytes, whose one digest covers all of them.
    assert estimate["over_bytes"]["total"] == 4 * 96
    assert stored.estimate_load()["over_bytes"]["total"] == 0


def test_blocks_that_several_machines_want_are_read_once_and_sent():
    job = JobDescription(HALVES)
    wanted = job.lay_out(JobDescription({"schema": 1, "ranks": 4, "rules": [{"match": "*"}]}))
    load = job.estimate_load(wanted, ranks_per_node=2, exchange="always")
    # The object is read by rank 0 and sent to rank 2; of the tensor each rank reads a quarter.
    assert load["exchange"] == "always" and load["per_rank"]["bytes"] == [40, 32, 32, 32]
    assert load["per_rank"]["received_bytes"] == [32, 32, 40, 32]
    assert load["per_rank"]["sent_bytes"] == [40, 32, 32, 32]
    assert load["per_rank"]["shared_bytes"] == [64, 72, 64, 72]
    assert load["received_bytes"]["total"] == load["sent_bytes"]["total"] == 136
    off = job.estimate_load(wanted, ranks_per_node=2, exchange="off")
    assert off["exchange"] == "off" and off["bytes"]["total"] == 2 * 136 and off["sent_bytes"]["total"] == 0
    with pytest.raises(shardwright.InvalidArgumentError, match="ranks_per_node") as caught:
        job.estimate_load(wanted, exchange="always")
    assert caught.value.details["parameter"] == "exchange"
    with pytest.raises(shardwright.InvalidArgumentError, match="it must be one of off, always"):
        job.estimate_load(wanted, ranks_per_node=2, exchange="auto")


def test_the_load_plan_of_each_rank_is_given():
    job = JobDescription(HALVES)
    target = JobDescription({"schema": 1, "ranks": 3, "rules": [{"match": "*"}]})
    plans = job.load_plans(job.lay_out(target))
    assert [plan.kind for plan in plans] == ["load"] * 3
    for rank, plan in enumerate(plans):
        shown = plan.to_dict()
        assert shown["rank"] == rank and shown["loaded"] == ["w", "step"]
        assert [read["offsets"] for read in shown["reads"]] == [[0, 0], [4, 0]]


def test_what_is_wrong_says_where():
    with pytest.raises(shardwright.InvalidArgumentError, match="line 2, column 2: 'mesh' is no key") as caught:
        JobDescription('{"schema": 1,\n "mesh": {}}')
    assert caught.value.details["line"] == "2" and caught.value.details["column"] == "2"
    with pytest.raises(shardwright.NotFoundError, match="'v' is wanted and not stored"):
        other = {**HALVES, "tensors": [{**HALVES["tensors"][0], "name": "v"}]}
        JobDescription(HALVES).lay_out(JobDescription(other))
    with pytest.raises(shardwright.UnimplementedError):
        JobDescription({"schema": 2})
    with pytest.raises(shardwright.InvalidArgumentError, match="owner"):
        JobDescription(HALVES).estimate_save(owner="nobody")
