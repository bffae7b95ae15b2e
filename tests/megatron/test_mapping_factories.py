# SPDX-License-Identifier: Apache-2.0
"""The mappings that are shipped store what the factories of the models of Megatron Core store: keys, shapes, boxes, values."""
import threading
from dataclasses import replace

import pytest
import torch

import shardwright
from shardwright.torch.megatron import ShardedTensor, ShardedTensorFactory

LAYERS, WIDTH = 3, 5


def swiglu(shard, offsets, suffixes):
    """A factory of the two halves of each tensor-parallel part."""
    prepended, axis = len(offsets), len(offsets)
    part = shard.global_offset[axis] // shard.local_shape[0]
    parts = shard.axis_fragmentations[axis]

    def build(key, data, replica_id, flattened_range):
        halves = []
        for number, (half, suffix) in enumerate(zip(torch.chunk(data, 2), suffixes or ("", ""))):
            place = (axis, part, parts) if suffixes else (axis, part + number * parts, 2 * parts)
            halves.append(ShardedTensor.from_rank_offsets(key + suffix, half, *offsets, place, replica_id=replica_id,
                                                          prepend_axis_num=prepended))
        return halves

    return ShardedTensorFactory(shard.key, shard.data, build, torch.cat)


def sections(shard, sizes, names):
    """A factory of sections of each tensor-parallel part."""

    def build(key, data, replica_id, flattened_range):
        found, start = [], 0
        whole = replace(shard, key=key, data=data, replica_id=replica_id)
        for size, name in zip(sizes, names):
            for narrowed in whole.narrow(0, start, size):
                found.append(replace(narrowed, key=f"{key}.{name}"))
            start += size
        return found

    return ShardedTensorFactory(shard.key, shard.data, build, torch.cat)


def stored(mapping, shards_of_rank, ranks, path):
    """Saves the same tensors by the mapping, one thread per rank; gives names, shapes and boxes of all ranks."""
    held, failures = [None] * ranks, []

    def save(rank, collective):
        try:
            tree = {name: shardwright.Shard.of_grid(data, fragments, index)
                    for name, data, fragments, index in shards_of_rank(rank)}
            state = shardwright.State(tree, mapping=mapping)
            held[rank] = state.boxes()
            shardwright.save(state, path, collective=collective)
        except BaseException as error:  # told by the test
            failures.append(error)

    threads = [threading.Thread(target=save, args=(rank, collective))
               for rank, collective in enumerate(shardwright.thread_collectives(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return held


def compare(held, wanted, path):
    """`wanted`: the shards of each rank that the factories built."""
    with shardwright.open(path) as checkpoint:
        for boxes, shards in zip(held, wanted):
            ours = {(name, shape, *box) for name, (shape, found) in boxes.items() for box in found}
            theirs = set()
            for shard in shards:
                sizes = (1,) * shard.prepend_axis_num + tuple(shard.local_shape)
                offsets = tuple(shard.global_offset)
                theirs.add((shard.key, tuple(shard.global_shape), offsets, sizes))
                place = tuple(slice(start, start + size) for start, size in zip(offsets, sizes))
                assert torch.equal(torch.as_tensor(checkpoint[shard.key][place]).reshape(shard.local_shape), shard.data)
            assert ours == theirs


def data_of(rank, layer, rows):
    return torch.arange(rows * WIDTH, dtype=torch.float32).reshape(rows, WIDTH) + 1000 * rank + 100000 * layer


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("prefix", ["", "optimizer.state.exp_avg."])
def test_halves_in_a_stack_of_layers(ranks, prefix, tmp_path):
    mapping = shardwright.Mapping.shipped("gpt_swiglu", layers=LAYERS, first_layer=0, vocabulary=10)
    stored_name = prefix + "decoder.layers.mlp.linear_fc1.weight"

    def built(rank):
        shards = []
        for layer in range(LAYERS):
            data = data_of(rank, layer, 4)
            shard = ShardedTensor.from_rank_offsets(stored_name, data, (0, layer, LAYERS), (1, rank, ranks), prepend_axis_num=1)
            shards += swiglu(shard, [(0, layer, LAYERS)], None).build()
        return shards

    held = stored(mapping, lambda rank: [(f"{prefix}decoder.layers.{layer}.mlp.linear_fc1.weight", data_of(rank, layer, 4),
                                          (ranks, 1), (rank, 0)) for layer in range(LAYERS)], ranks, tmp_path / "c")
    compare(held, [built(rank) for rank in range(ranks)], tmp_path / "c")


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("suffixes", [None, ("_w", "_v")])
def test_halves_under_one_key_or_two(ranks, suffixes, tmp_path):
    name = "decoder.layers.0.mlp.linear_fc1.weight"
    mapping = shardwright.Mapping.shipped("swiglu") if suffixes is None else shardwright.Mapping(
        '{"schema": 1, "rules": [{"match": "*.linear_fc1.weight", "steps": [{"split": {"axis": 0, "suffixes": ["_w", "_v"]}}]}]}')

    def built(rank):
        shard = ShardedTensor.from_rank_offsets(name, data_of(rank, 0, 6), (0, rank, ranks))
        return swiglu(shard, [], suffixes).build()

    held = stored(mapping, lambda rank: [(name, data_of(rank, 0, 6), (ranks, 1), (rank, 0))], ranks, tmp_path / "c")
    compare(held, [built(rank) for rank in range(ranks)], tmp_path / "c")


@pytest.mark.parametrize("ranks", [1, 2])
def test_parts_of_mamba(ranks, tmp_path):
    inner, state, heads = 8, 4, 2
    mapping = shardwright.Mapping.shipped("mamba", inner=inner, state=state, heads=heads)
    sizes = {"in_proj": ([inner, inner, state, state, heads], ["z", "x", "B", "C", "dt"]),
             "conv1d": ([inner, state, state], ["x", "B", "C"])}

    def named(rank):
        for layer, (part, (lengths, names)) in enumerate(sizes.items()):
            rows = sum(lengths) // ranks
            yield f"decoder.layers.0.mixer.{part}.weight", data_of(rank, layer, rows), [n // ranks for n in lengths], names

    def built(rank):
        return [shard for name, data, lengths, names in named(rank)
                for shard in sections(ShardedTensor.from_rank_offsets(name, data, (0, rank, ranks)), lengths, names).build()]

    held = stored(mapping, lambda rank: [(name, data, (ranks, 1), (rank, 0)) for name, data, _, _ in named(rank)], ranks,
                  tmp_path / "c")
    compare(held, [built(rank) for rank in range(ranks)], tmp_path / "c")


def test_factories_of_megatron_core_build_the_same(original):
    """The factories above are those of the original."""
    mlp = pytest.importorskip("megatron.core.transformer.mlp")
    mixer = pytest.importorskip("megatron.core.ssm.mamba_mixer")
    theirs = original.mapping.ShardedTensor

    def facts(shards):
        return [(s.key, tuple(s.global_shape), tuple(s.global_offset), tuple(s.local_shape), s.data.tolist()) for s in shards]

    data, offsets = data_of(1, 2, 6), [(0, 2, LAYERS)]
    arguments = ("w", data, *offsets, (1, 1, 2))
    for suffixes in (None, ("_w", "_v")):
        found = mlp.apply_swiglu_sharded_factory(theirs.from_rank_offsets(*arguments, prepend_axis_num=1), offsets,
                                                 singleton_local_shards=suffixes is not None)
        ours = swiglu(ShardedTensor.from_rank_offsets(*arguments, prepend_axis_num=1), offsets, suffixes)
        assert facts(ours.build()) == facts(found.build())
    arguments = ("w", data, (0, 1, 2))
    found = mixer._split_tensor_factory(theirs.from_rank_offsets(*arguments), [4, 2], ["x", "B"], 0)
    ours = sections(ShardedTensor.from_rank_offsets(*arguments), [4, 2], ["x", "B"])
    assert facts(ours.build()) == facts(found.build())
