# SPDX-License-Identifier: Apache-2.0
"""Ranks that share what several of them hold, on four ranks without megatron-core: two data-parallel groups of two, and all."""
import dataclasses
import json
import os
from unittest import mock

import shardwright
import torch
import torch.distributed as dist
from own_vocabulary import failure_of, made, same_on_all
from shardwright.torch import megatron as ours
from shardwright.torch.megatron import consistency, exchange
from shardwright.torch.megatron.strategies import distribution_cache
from states import assert_equal

CASES = []
ALGORITHMS = ("broadcast", "gather_rounds", "gather_object")
# Ranks 0 and 2 are one data-parallel group, 1 and 3 the other; the tensor-parallel rank is rank mod 2.
GROUPS = [dist.new_group([0, 2]), dist.new_group([1, 3])]
UNEVEN = [dist.new_group([0, 1, 2]), dist.new_group([3])]


def case(function):
    CASES.append(function)
    return function


# ---- vocabulary ----

def group_of(rank):
    return GROUPS[rank % 2]


def replicated(key, data, replica):
    return ours.ShardedTensor.from_rank_offsets(key, data, replica_id=replica)


def state(rank, fill=None):
    """As tensor and data parallelism hold it: split by two and replicated by two, replicated by four, split by four."""
    tp, dp = rank % 2, rank // 2

    def values(*shape, dtype=torch.float32):
        count = torch.Size(shape).numel()
        made = torch.arange(count).to(dtype).reshape(shape)
        return made if fill is None else torch.full_like(made, fill)

    tree = {f"split{n}": ours.ShardedTensor.from_rank_offsets(f"split{n}", values(3, 2) + (10 * tp if fill is None else 0),
                                                              (0, tp, 2), replica_id=dp) for n in range(3)}
    tree["layers"] = [ours.ShardedTensor.from_rank_offsets("layers", values(2) + (n if fill is None else 0), (0, n, 2), replica_id=rank,
                                                           prepend_axis_num=1) for n in range(2)]
    tree["same"] = replicated("same", values(50), (0, rank))
    tree["half"] = replicated("half", values(5, dtype=torch.bfloat16), (0, rank))
    tree["flags"] = replicated("flags", values(6).remainder(2) > 0 if fill is None else torch.zeros(6, dtype=torch.bool), (0, rank))
    tree["scalar"] = replicated("scalar", torch.tensor(3.5 if fill is None else 0.0), rank)
    tree["own"] = ours.ShardedTensor.from_rank_offsets("own", torch.full((2,), float(rank if fill is None else fill)), (0, rank, 4))
    tree["object"] = ours.ShardedObject("object", {"a": [1, tp]} if fill is None else None, (2,), (tp,), replica_id=dp)
    tree["shared"] = ours.ShardedObject("shared", "text" if fill is None else None, (1,), (0,), replica_id=rank)
    return tree


def data_of(tree):
    return ours.dict_list_map_outplace(lambda leaf: leaf.data, tree)


def emptied(tree):
    """A request of tensors with other values in memory of its own."""
    return ours.dict_list_map_outplace(lambda leaf: dataclasses.replace(leaf, data=torch.zeros_like(leaf.data)), tree)


def saver(rank, group="dp", **options):
    strategy = ours.TorchDistSaveShardedStrategy("torch_dist", 1)
    return ours.FullyParallelSaveStrategyWrapper(strategy, group_of(rank) if group == "dp" else None, **options)


class Recording(ours.TorchDistLoadShardedStrategy):
    """Notes the keys that it was asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def load_over(self, sharded_state_dict, checkpoint_dir, process_group):
        self.asked += [(leaf.key, tuple(leaf.global_offset)) for leaf in ours.nested_values(sharded_state_dict)]
        return super().load_over(sharded_state_dict, checkpoint_dir, process_group)


def everyone(value):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


class Written(ours.TorchDistSaveShardedStrategy):
    """Notes what this rank writes."""

    def save(self, sharded_state_dict, checkpoint_dir):
        self.keys = [leaf.key for leaf in ours.nested_values(sharded_state_dict)
                     if hasattr(leaf, "local_shape") and ours.is_main_replica(leaf.replica_id)]
        super().save(sharded_state_dict, checkpoint_dir)


# ---- cases ----

@case
def ranks_share_the_writing_and_nothing_of_theirs_is_changed(folder, rank):
    for group in ("dp", "world"):
        strategy = Written("torch_dist", 1)
        wrapper = ours.FullyParallelSaveStrategyWrapper(strategy, group_of(rank) if group == "dp" else None)
        tree = state(rank)
        before = repr(tree)
        ours.save(tree, made(folder / group), wrapper)
        assert repr(tree) == before
        keys = [key for found in everyone(strategy.keys) for key in found]
        assert sorted(keys) == sorted(["split0", "split1", "split2"] * 2 + ["layers"] * 2 + ["same", "half", "flags", "scalar"]
                                      + ["own"] * 4)
        writers = [set(found) for found in everyone(strategy.keys)]
        # A group saves only what has its main replica there.
        assert all(writers) and sum("same" in found for found in writers) == 1
        assert_equal(ours.load(state(rank, -1), folder / group), data_of(state(rank)))


@case
def each_byte_is_read_once_in_a_group_and_reaches_who_wants_it(folder, rank):
    ours.save(state(rank), made(folder / "c"), saver(rank))
    for group in ("dp", "world"):
        for algorithm in ALGORITHMS:
            strategy = Recording()
            wrapper = ours.FullyParallelLoadStrategyWrapper(strategy, group_of(rank) if group == "dp" else None,
                                                            exchange_algo=algorithm)
            request = state(rank, -1)
            places = [leaf.data.data_ptr() for leaf in ours.nested_values(request) if hasattr(leaf, "local_shape")]
            found = ours.load(request, folder / "c", wrapper)
            assert_equal(found, data_of(state(rank)))
            assert [value.data_ptr() for value in ours.nested_values(found) if isinstance(value, torch.Tensor)] == places
            asked = everyone(strategy.asked)
            together = [asked] if group == "world" else [[asked[0], asked[2]], [asked[1], asked[3]]]
            for ranks in together:
                tensors = [one for listed in ranks for one in listed if one[0] not in ("object", "shared")]
                assert len(tensors) == len(set(tensors)), tensors
            assert sorted(one for listed in asked for one in listed if one[0] in ("object", "shared")) == [
                ("object", (0,)), ("object", (1,)), ("shared", (0,))]


@case
def requests_without_memory_get_some(folder, rank):
    ours.save(state(rank), made(folder / "c"), saver(rank))
    request = ours.dict_list_map_outplace(lambda leaf: leaf.without_data(), state(rank))
    for algorithm in ALGORITHMS:
        wrapper = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), exchange_algo=algorithm)
        assert_equal(ours.load(request, folder / "c", wrapper), data_of(state(rank)))


@case
def only_ranks_that_want_a_shard_receive_it(folder, rank):
    """What passes, and the memory for it: one tensor at a time, and none where the destination can be filled."""
    big = 1 << 18
    tree = {f"t{n}": replicated(f"t{n}", torch.full((big,), float(n)), rank) for n in range(4)}
    tree["pair"] = ours.ShardedTensor.from_rank_offsets("pair", torch.full((big,), float(rank % 2)), (0, rank % 2, 2), replica_id=rank // 2)
    tree["strided"] = replicated("strided", torch.arange(8.0).reshape(2, 4).t(), rank)
    ours.save(tree, made(folder / "c"), saver(rank, "world"))
    for algorithm in ("broadcast", "gather_rounds"):
        request = emptied(tree)
        sent, received, room = [], [], []
        true_out, true_in, true_empty = exchange._Ends.outgoing, exchange._Ends.incoming, torch.empty
        with mock.patch.object(exchange._Ends, "outgoing", lambda ends, shard: (sent.append(shard), true_out(ends, shard))[1]), \
             mock.patch.object(exchange._Ends, "incoming", lambda ends, shard: (received.append(shard), true_in(ends, shard))[1]), \
             mock.patch.object(exchange.torch, "empty", lambda *a, **k: (room.append(a), true_empty(*a, **k))[1]):
            found = ours.load(request, folder / "c", ours.FullyParallelLoadStrategyWrapper(
                ours.TorchDistLoadShardedStrategy(), exchange_algo=algorithm), validate_access_integrity=False)
        assert torch.equal(found["t3"], torch.full((big,), 3.0)) and torch.equal(found["pair"], torch.full((big,), float(rank % 2)))
        assert torch.equal(found["strided"], torch.arange(8.0).reshape(2, 4).t())
        assert {shard[1] for shard in received if shard[0] == "pair"} <= {((rank % 2) * big,)}, "the other half is not wanted here"
        assert len(received) == len(set(received)) and not set(received) & set(sent)
        assert all(torch.Size(shape[0]).numel() <= 8 for shape in room if shape and isinstance(shape[0], (tuple, torch.Size))), room


@case
def shards_at_one_place_with_other_extents_are_not_mixed_up(folder, rank):
    """An irregular grid of which ranks ask for other parts that begin alike; ids know no extents."""
    whole = torch.arange(12.0)
    ours.save({"k": replicated("k", whole.clone(), rank)}, made(folder / "c"), saver(rank, "world"))
    count = (5, 3, 0, 5)[rank]
    for algorithm in ALGORITHMS:
        request = {"k": ours.ShardedTensor("k", torch.zeros(count), torch.float32, (count,), (12,), (0,), None)}
        wrapper = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), exchange_algo=algorithm)
        found = ours.load(request, folder / "c", wrapper, validate_access_integrity=False)
        assert torch.equal(found["k"], whole[:count]), found


@case
def a_shard_that_a_rank_asks_for_twice_fills_both(folder, rank):
    ours.save({"k": replicated("k", torch.arange(6.0), rank)}, made(folder / "c"), saver(rank, "world"))
    for algorithm in ALGORITHMS:
        request = {"a": replicated("k", torch.zeros(6), rank), "b": replicated("k", torch.zeros(6), rank + 1)}
        wrapper = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), exchange_algo=algorithm)
        found = ours.load(request, folder / "c", wrapper, validate_access_integrity=False)
        assert all(torch.equal(found[name], torch.arange(6.0)) and found[name] is not found["ab".replace(name, "")] for name in "ab")
        assert torch.equal(request["b"].data, torch.arange(6.0))


@case
def shards_of_which_no_rank_of_the_group_is_main_are_shared_too(folder, rank):
    """Replica ids that do not grow with the rank, and groups without a main replica."""
    tree = {f"k{n}": replicated(f"k{n}", torch.full((4,), float(n)), 5 + (rank - n) % 4 if n == 3 else (rank - n) % 4)
            for n in range(4)}
    ours.save({f"k{n}": replicated(f"k{n}", torch.full((4,), float(n)), rank) for n in range(4)}, made(folder / "c"))
    for algorithm in ALGORITHMS:
        strategy = Recording()
        found = ours.load(emptied(tree), folder / "c", ours.FullyParallelLoadStrategyWrapper(strategy, group_of(rank), exchange_algo=algorithm),
                          validate_access_integrity=False)
        assert all(torch.equal(found[f"k{n}"], torch.full((4,), float(n))) for n in range(4))
        assert len(strategy.asked) == 2


@case
def objects_reach_all_ranks_or_are_missed_on_all(folder, rank):
    ours.save(state(rank), made(folder / "c"), saver(rank))
    request = {"object": ours.ShardedObject("object", None, (2,), (rank % 2,), replica_id=1 + rank // 2),
               "same": replicated("same", torch.zeros(50), (0, rank))}
    wrapper = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), group_of(rank))
    error = same_on_all(failure_of(lambda: ours.load(request, folder / "c", wrapper, validate_access_integrity=False)))
    assert "Missing object shards" in str(error) and isinstance(error, ours.CheckpointingException)
    each = ours.FullyParallelLoadStrategyWrapper(Recording(), group_of(rank), per_rank_object_load=True)
    assert ours.load(request, folder / "c", each, validate_access_integrity=False)["object"] == {"a": [1, rank % 2]}
    assert ("object", (rank % 2,)) in each.strategy.asked


@case
def a_kept_distribution_is_planned_anew_by_content(folder, rank):
    """With do_cache_distribution the original leaves out what came after the first save."""
    wrapper, reader = saver(rank, do_cache_distribution=True), ours.FullyParallelLoadStrategyWrapper(
        ours.TorchDistLoadShardedStrategy(), group_of(rank), do_cache_distribution=True)
    true, planned = distribution_cache.determine_main_replica_uniform_distribution, []
    with mock.patch.object(distribution_cache, "determine_main_replica_uniform_distribution",
                           lambda *a: (planned.append(1), true(*a))[1]):
        for count in range(4):
            tree, request = state(rank), state(rank, -1)
            if count >= 2:
                tree["late"] = replicated("late", torch.full((3,), 2.0), rank)
                request["late"] = replicated("late", torch.zeros(3), rank)
            ours.save(tree, made(folder / f"c{count}"), wrapper)
            assert_equal(ours.load(request, folder / f"c{count}", reader), data_of(tree))
            assert len(planned) == (2, 2, 4, 4)[count]
    with mock.patch.object(consistency, "described_on_all", side_effect=AssertionError("nothing has changed")):
        ours.save(tree, made(folder / "c4"), saver(rank))  # the same distribution, planned anew, was proved before
    assert wrapper.cached_distribution is not None and saver(rank).cached_distribution is None


@case
def groups_of_different_sizes_share_and_fail_together(folder, rank):
    """The original's ranks that share with nobody do not take part in what the others then wait for."""
    group = UNEVEN[rank // 3]
    plain = ours.TorchDistSaveShardedStrategy("torch_dist", 1)
    ours.save(state(rank), made(folder / "c"), ours.FullyParallelSaveStrategyWrapper(plain, group))
    reader = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), group)
    assert_equal(ours.load(state(rank, -1), folder / "c", reader), data_of(state(rank)))
    blocked = folder / "blocked"
    if rank == 0:
        blocked.write_text("no folder")
    dist.barrier()
    failing = ours.FullyParallelSaveStrategyWrapper(plain, group, pg_cache_path=blocked / "cache", pg_cache_create=True)
    same_on_all(failure_of(lambda: ours.save(state(rank), folder / "c", failing)))
    assert_equal(ours.load(state(rank, -1), folder / "c", reader), data_of(state(rank)))


@case
def distributions_lie_in_files_and_are_used_where_they_fit(folder, rank):
    cache = made(folder / "cache")
    ours.save(state(rank), made(folder / "a"), saver(rank, pg_cache_path=cache, pg_cache_create=True))
    dist.barrier()
    assert sorted(os.listdir(cache)) == ["pg_dist_0.json", "pg_dist_1.json"]
    true, planned = distribution_cache.determine_main_replica_uniform_distribution, []
    with mock.patch.object(distribution_cache, "determine_main_replica_uniform_distribution",
                           lambda *a: (planned.append(1), true(*a))[1]):
        ours.save(state(rank), made(folder / "b"), saver(rank, pg_cache_path=cache))
        assert planned == []
        assert_equal(ours.load(state(rank, -1), folder / "b"), data_of(state(rank)))
        ours.save(state(rank) | {"late": replicated("late", torch.ones(3), rank)}, made(folder / "c"), saver(rank, pg_cache_path=cache))
        assert planned == [1] and set(ours.load_tensors_metadata(folder / "c")) >= {"late", "same"}
        ours.save(state(rank), made(folder / "d"), saver(rank, "world", pg_cache_path=cache))
        assert planned == [1, 1], "a file of another group"
        dist.barrier()
        if rank == 0:
            for name in os.listdir(cache):
                (folder / "cache" / name).write_text(json.dumps({"version": 1, "digests": 5}) if name == "pg_dist_0.json" else "{")
        dist.barrier()
        ours.save(state(rank), made(folder / "e"), saver(rank, pg_cache_path=cache))
        assert planned == [1, 1, 1]
    for name in "acde":
        assert_equal(ours.load(state(rank, -1), folder / name), data_of(state(rank)))


@case
def saves_in_the_background_and_groups_of_one(folder, rank):
    pending = ours.save(state(rank), made(folder / "c"), saver(rank), async_sharded_save=True)
    pending.execute_sync()
    assert_equal(ours.load(state(rank, -1), folder / "c"), data_of(state(rank)))
    alone = [dist.new_group([one]) for one in range(4)][rank]
    tree = {"w": ours.ShardedTensor.from_rank_offsets("w", torch.full((2,), float(rank)), (0, rank, 4))}
    ours.save(tree, made(folder / "d"), ours.FullyParallelSaveStrategyWrapper(ours.TorchDistSaveShardedStrategy(), alone))
    request = {"w": ours.ShardedTensor.from_rank_offsets("w", torch.zeros(2), (0, rank, 4))}
    wrapper = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), alone)
    assert torch.equal(ours.load(request, folder / "d", wrapper)["w"], torch.full((2,), float(rank)))


@case
def a_group_loads_by_itself(folder, rank):
    """`process_group` of load: the ranks of the other group take no part."""
    ours.save(state(rank), made(folder / "c"), saver(rank))
    if rank % 2 == 0:
        request = {"same": replicated("same", torch.zeros(50), rank // 2), "shared": ours.ShardedObject("shared", None, (1,), (0,), rank // 2)}
        for strategy in (None, ours.TorchDistLoadShardedStrategy(),
                         ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), group_of(rank))):
            found = ours.load(request, folder / "c", strategy, process_group=group_of(rank), strict="return_unexpected")
            assert torch.equal(found[0]["same"], torch.arange(50.0)) and found[0]["shared"] == "text" and found[1:] == (set(), set())


@case
def an_unknown_exchange_is_refused_before_anything_moves(folder, rank):
    error = failure_of(lambda: ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), exchange_algo="other"))
    assert isinstance(error, NotImplementedError) and "Unrecognized gather algorithm: other" in str(error)
    assert isinstance(failure_of(lambda: ours.exchange_by_distribution({}, {}, None)), ours.CheckpointingException)
    assert isinstance(error, shardwright.errors.UnimplementedError)
