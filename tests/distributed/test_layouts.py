# SPDX-License-Identifier: Apache-2.0
"""Layouts against torch's own DTensor arithmetic: random meshes, placements and shapes, strided ones among them.

No process group: torch's functions take plain meshes and coordinates. SHW_SEED repeats a run, SHW_SOAK makes it long.
"""
import itertools
import math
import os
import random

import numpy as np
import pytest
import torch
from shardwright import Layout
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard

WORLDS = 100_000 if "SHW_SOAK" in os.environ else 1_500


def random_world(rng, strided):
    """(mesh extents, torch placements, shape)."""
    shape = tuple(0 if rng.random() < 0.05 else rng.randint(1, 12) for _ in range(rng.randint(0, 3)))
    mesh = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
    placements = []
    for _ in mesh:
        if not shape or rng.random() < 0.2:
            placements.append(Replicate())
        elif strided and rng.random() < 0.6:
            placements.append(_StridedShard(rng.randrange(len(shape)), split_factor=rng.randint(1, 5)))
        else:
            placements.append(Shard(rng.randrange(len(shape))))
    return mesh, placements, shape


def layout_of(mesh, placements):
    rows = []
    for placement in placements:
        if isinstance(placement, _StridedShard):
            rows.append(("strided_shard", placement.dim, placement.split_factor))
        else:
            rows.append(("shard", placement.dim) if isinstance(placement, Shard) else "replicate")
    return Layout(mesh, rows)


def local_of_torch(whole, mesh, placements, coordinate):
    """What distribute_tensor leaves on a rank: one placement after the other splits the tensor."""
    local = whole
    for placement, parts, index in zip(placements, mesh, coordinate, strict=True):
        if not isinstance(placement, Replicate):
            local = placement._split_tensor(local, parts, with_padding=False, contiguous=True)[0][index]
    return local.numpy()


def local_of_pieces(whole, pieces, local_shape):
    local = np.full(local_shape, -1, dtype=whole.dtype)
    for offsets, sizes, start in pieces:
        at = np.unravel_index(start, local_shape) if local.size and local_shape else (0,) * len(local_shape)
        window = tuple(slice(o, o + s) for o, s in zip(at, sizes, strict=True))
        assert (local[window] == -1).all(), "each element is held once"
        local[window] = whole[tuple(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True))]
    return local


def check_world(mesh, placements, shape):
    """Compares every rank; how many of them hold more than one box."""
    whole = torch.arange(math.prod(shape)).reshape(shape)
    layout = layout_of(mesh, placements)
    several = 0
    for rank, coordinate in enumerate(itertools.product(*map(range, mesh))):
        pieces = layout.pieces(shape, rank)
        sizes, first = _compute_local_shape_and_global_offset(shape, mesh, list(coordinate), placements)
        assert layout.local_shape(shape, rank) == tuple(sizes)
        assert pieces[0][0] == tuple(first), "torch names the first box"
        if len(pieces) == 1:
            assert pieces[0][1] == tuple(sizes)
        several += len(pieces) > 1
        np.testing.assert_array_equal(local_of_pieces(whole.numpy(), pieces, tuple(sizes)),
                                      local_of_torch(whole, mesh, placements, coordinate))
    return several


@pytest.mark.parametrize("strided", [False, True], ids=["chunks", "strides"])
def test_random_layouts_hold_what_torch_holds(strided):
    seed = int(os.environ.get("SHW_SEED", random.SystemRandom().randrange(2**32)))
    several = 0
    for number in range(WORLDS):
        world = random_world(random.Random(seed + number), strided)
        try:
            several += check_world(*world)
        except AssertionError as error:
            raise AssertionError(f"repeat with SHW_SEED={seed + number}: {world}") from error
    assert (several > 0) == strided, "only strides give several boxes"


@pytest.mark.parametrize(("extent", "sizes", "offsets"), [
    (10, [3, 3, 3, 1], [0, 3, 6, 9]), (6, [2, 2, 2, 0], [0, 2, 4, 6]), (3, [1, 1, 1, 0], [0, 1, 2, 3])])
def test_uneven_shards_are_those_of_dcp(extent, sizes, offsets):
    layout = Layout((4,), [0])
    assert [layout.pieces((extent,), rank) for rank in range(4)] == [
        [((offset,), (size,), 0)] for offset, size in zip(offsets, sizes, strict=True)]


@pytest.mark.parametrize(("extent", "sizes", "offsets"), [(8, [2, 2, 2, 2], [0, 4, 2, 6]), (10, [3, 3, 2, 2], [0, 5, 3, 8])])
def test_fsdp_with_tensor_parallelism_is_that_of_dcp(extent, sizes, offsets):
    layout = Layout((2, 2), [("strided_shard", 0, 2), 0])
    assert [layout.pieces((extent,), rank) for rank in range(4)] == [
        [((offset,), (size,), 0)] for offset, size in zip(offsets, sizes, strict=True)]


def test_nested_shards_are_those_of_dcp():
    layout = Layout((2, 2), [0, 0])
    assert [layout.boxes((5,), rank)[0] for rank in range(4)] == [((0,), (2,)), ((2,), (1,)), ((3,), (1,)), ((4,), (1,))]


def test_uneven_strides_that_dcp_cuts_short_are_whole():
    """torch's DCP stores only the first run of such a shard and its size: here every run has its box."""
    mesh, placements = (2,), [_StridedShard(0, split_factor=2)]
    sizes, first = _compute_local_shape_and_global_offset((6,), mesh, [1], placements)
    assert (tuple(sizes), tuple(first)) == ((2,), (2,)), "as if elements 2 and 3 were held"
    assert layout_of(mesh, placements).boxes((6,), 1) == [((2,), (1,)), ((5,), (1,))]
