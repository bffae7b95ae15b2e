# SPDX-License-Identifier: Apache-2.0
"""Flat ranges of fused weights, as ranks of a distributed optimizer hold them, stored by a mapping: what a factory builds of
them is what is stored, and any other cut of them loads it."""
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

import shardwright
from shardwright.layout import GridShard
from shardwright.torch.megatron import ShardedTensor, ShardedTensorFactory

ROWS, WIDTH = 6, 5  # of [W; V] on one tensor-parallel rank
NAME = "optimizer.state.exp_avg.decoder.layers.0.mlp.linear_fc1.weight"
HALVES = '{"schema": 1, "rules": [{"match": "*.linear_fc1.weight", "steps": [{"split": {"axis": 0, "suffixes": ["_w", "_v"]}}]}]}'


def part_of(rank, ranks):
    """[W; V] of a tensor-parallel rank of the same whole W and V of 6 rows each; its rows depend on the number of ranks."""
    whole = torch.arange(4 * ROWS * WIDTH, dtype=torch.float32).reshape(2, 2 * ROWS, WIDTH)
    return torch.cat([half.chunk(ranks)[rank] for half in whole])


def cut(count, parts):
    """Ranges of unequal lengths that make `count`."""
    ends = [count * number * (number + 1) // (parts * (parts + 1)) for number in range(parts + 1)]
    return list(zip(ends, ends[1:]))


def held(tensor_ranks, data_ranks, rank):
    """The shape of the part, its range and the grid of what a rank of all holds."""
    data = part_of(rank // data_ranks, tensor_ranks)
    begin, end = cut(data.numel(), data_ranks)[rank % data_ranks]
    return data, (begin, end), (0, rank // data_ranks, tensor_ranks)


def state_of(tensor_ranks, data_ranks, rank, *, empty=False):
    data, (begin, end), place = held(tensor_ranks, data_ranks, rank)
    values = data.reshape(-1)[begin:end].clone().numpy()
    if empty:
        values[:] = -1
    part = GridShard.at(data.shape, place, flat_range=(begin, end))
    return values, shardwright.State({NAME: shardwright.Shard.of_part(values, part)}, writable=empty,
                                     mapping=shardwright.Mapping(HALVES))


def on_ranks(ranks, function):
    """Calls with (rank, collective) on a thread each; what they gave."""
    results, failures = [None] * ranks, []

    def call(rank, collective):
        try:
            results[rank] = function(rank, collective)
        except BaseException as error:  # told below
            failures.append(error)

    threads = [threading.Thread(target=call, args=(rank, collective))
               for rank, collective in enumerate(shardwright.thread_collectives(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return results


def save(path, tensor_ranks, data_ranks):
    def one(rank, collective):
        _, state = state_of(tensor_ranks, data_ranks, rank)
        shardwright.save(state, path, collective=collective)
        return state.boxes()

    return on_ranks(tensor_ranks * data_ranks, one)


def digests(path):
    with shardwright.open(path) as checkpoint:
        return {name: checkpoint[name].digest() for name in checkpoint.keys()}


def halves(shard):
    """A factory of both halves of a flat range, each under a key of its own."""

    def build(key, data, replica_id, flattened_range):
        whole = replace(shard, key=key, data=data, replica_id=replica_id, flattened_range=flattened_range)
        half = shard.local_shape[0] // 2
        return [replace(narrowed, key=key + suffix) for start, suffix in ((0, "_w"), (half, "_v"))
                for narrowed in whole.narrow(0, start, half)]

    return ShardedTensorFactory(shard.key, shard.data, build, torch.cat, flattened_range=shard.flattened_range)


@pytest.mark.parametrize("tensor_ranks, data_ranks", [(1, 2), (2, 1), (2, 2), (3, 3)])
def test_what_is_stored_is_what_a_factory_builds(tensor_ranks, data_ranks, tmp_path):
    boxes_of_ranks = save(tmp_path / "c", tensor_ranks, data_ranks)
    with shardwright.open(tmp_path / "c") as checkpoint:
        for rank, boxes in enumerate(boxes_of_ranks):
            data, (begin, end), place = held(tensor_ranks, data_ranks, rank)
            shard = ShardedTensor.from_rank_offsets_flat(NAME, data.reshape(-1)[begin:end], data.shape, place,
                                                         flattened_range=slice(begin, end))
            theirs = set()
            for built in halves(shard).build():
                flat = built.flattened_range
                pieces = GridShard(tuple(built.local_shape), tuple(built.global_shape), tuple(built.global_offset),
                                               built.axis_fragmentations, flat_range=(flat.start, flat.stop)).pieces()
                for offsets, sizes, start in pieces:
                    theirs.add((built.key, tuple(built.global_shape), offsets, sizes))
                    found = checkpoint[built.key][tuple(slice(at, at + size) for at, size in zip(offsets, sizes))]
                    assert np.asarray(found).ravel().tolist() == built.data[start:start + math.prod(sizes)].tolist()
            assert {(name, shape, *box) for name, (shape, found) in boxes.items() for box in found} == theirs


def test_other_ranges_load_it_and_store_the_same(tmp_path):
    save(tmp_path / "two", 1, 2)
    stored = digests(tmp_path / "two")
    assert sorted(stored) == [NAME + "_v", NAME + "_w"]
    for tensor_ranks, data_ranks in ((1, 1), (1, 3), (2, 1), (2, 3), (3, 2)):

        def load(rank, collective):
            values, state = state_of(tensor_ranks, data_ranks, rank, empty=True)
            shardwright.load(tmp_path / "two", into=state, collective=collective)
            data, (begin, end), _ = held(tensor_ranks, data_ranks, rank)
            assert values.tolist() == data.reshape(-1)[begin:end].tolist()

        on_ranks(tensor_ranks * data_ranks, load)
        path = tmp_path / f"{tensor_ranks}-{data_ranks}"
        save(path, tensor_ranks, data_ranks)
        assert digests(path) == stored


def test_a_range_that_says_no_parts_is_refused():
    data = np.arange(10, dtype=np.float32)
    boxes = (((0, 0), (2, WIDTH)),)  # rows that would pass for a part of the tensor
    with pytest.raises(shardwright.InvalidArgumentError, match=r"split\.axis.*none of equal parts.*say into how many"):
        shardwright.State({NAME: shardwright.Shard(data, (2 * ROWS, WIDTH), boxes)}, mapping=shardwright.Mapping(HALVES))
    with pytest.raises(shardwright.InvalidArgumentError, match="5 equal parts"):
        shardwright.State({NAME: shardwright.Shard(data, (2 * ROWS, WIDTH), boxes, fragments=(5, 1))})
    with pytest.raises(shardwright.InvalidArgumentError, match="1 fragments"):
        shardwright.State({NAME: shardwright.Shard(data, (2 * ROWS, WIDTH), boxes, fragments=(5,))})
