# SPDX-License-Identifier: Apache-2.0
"""Tensors above 4 GiB and above 2^31 elements, in sparse files so that only what is touched costs memory.

A whole round trip writes and reads 4.1 GiB, which takes longer than the rest of the suite: it runs where SHW_SOAK is
set. Every run checks the arithmetic: shapes, boxes and offsets beyond 32 bits through layouts, plans and slices.
"""
import os

import numpy as np
import pytest
import shardwright

ELEMENTS = (1 << 32) + 4096
needs_time = pytest.mark.skipif("SHW_SOAK" not in os.environ, reason="writes 4 GiB; set SHW_SOAK to run it")


def sparse(path, dtype, shape, mode="w+"):
    return np.memmap(path, dtype=dtype, mode=mode, shape=shape)


def test_boxes_beyond_32_bits():
    layout = shardwright.Layout((3,), [0])
    (start, size), = layout.boxes((ELEMENTS, 7), 2)
    assert start == (2 * ((ELEMENTS + 2) // 3), 0) and start[0] + size[0] == ELEMENTS


def test_plans_of_large_tensors(tmp_path):
    array = sparse(tmp_path / "source", "u1", (ELEMENTS,))
    planner = shardwright.SavePlanner({"w": array, "h": array.view("f2")[:1 << 31]}, path=tmp_path / "p", verify_replicas="off")
    planner.finish(planner.global_plan([planner.local_plan()])[0])
    shard = shardwright.Shard(np.ones(5, "u1"), (1 << 40, 3), boxes=(((1 << 39, 0), (5, 1)),))
    assert shardwright.SavePlanner({"w": shard}, path=tmp_path / "q").local_plan()


@needs_time
def test_a_large_tensor_is_saved_sliced_and_loaded(tmp_path):
    array = sparse(tmp_path / "source", "u1", (ELEMENTS,))
    marks = {0: 1, (1 << 31) + 5: 2, (1 << 32) - 1: 3, 1 << 32: 4, ELEMENTS - 1: 5}
    for position, value in marks.items():
        array[position] = value
    shardwright.save({"w": array}, tmp_path / "p", durability="none")
    with shardwright.open(tmp_path / "p") as c:
        assert c["w"].shape == (ELEMENTS,) and c["w"].nbytes == ELEMENTS
        for position, value in marks.items():
            assert c["w"][position] == value
            assert c["w"][max(0, position - 2):position + 3].sum() >= value
    target = sparse(tmp_path / "target", "u1", (ELEMENTS,))
    shardwright.load(tmp_path / "p", into={"w": target})
    assert {p: int(target[p]) for p in marks} == marks and int(target[::4097].sum()) == int(array[::4097].sum())
