# SPDX-License-Identifier: Apache-2.0
"""What two ranks do together: our names inside torch's own save and load and inside megatron-core's strategies.

A case takes its folder and the rank, asserts, and is named after what holds.
"""
import contextlib
import types
from unittest import mock

import originals
import shardwright
import shardwright.torch.dcp
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from megatron.core.dist_checkpointing import core
from shardwright.torch import megatron as ours
from shardwright.torch.megatron.distribution import with_owners
from states import UNEVEN, WHOLE, assert_equal, data_of, emptied, irregular, state, values
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

original = types.SimpleNamespace(**originals.modules())
CASES = []


def case(function):
    CASES.append(function)
    return function


# ---- vocabulary ----

def save_with_torch(tree, path):
    grouped, _, _ = ours._replace_state_dict_keys_with_sharded_keys(tree, keep_only_main_replica=True)
    return dcp.save(ours.mcore_to_pyt_state_dict(grouped), checkpoint_id=path, planner=ours.MCoreSavePlanner(flatten_state_dict=False))


def load_with_torch(request, path):
    leaves = list(ours.nested_values(request))
    grouped, paths, names = ours._replace_state_dict_keys_with_sharded_keys(request)
    wanted = ours.mcore_to_pyt_state_dict(grouped, is_loading=True)
    tensors = [leaf for leaf in leaves if hasattr(leaf, "local_shape")]
    dcp.load(wanted, checkpoint_id=path, planner=ours.MCoreLoadPlanner(shapes_validation_sharded_tensors=tensors))
    unwrapped = {key: ours._unwrap_pyt_sharded_tensor(value) for key, value in wanted.items()}
    found = ours._replace_sharded_keys_with_state_dict_keys(unwrapped, paths, names)
    ours._restore_dict_types(found, request)
    return found


@contextlib.contextmanager
def our_names(*names):
    """megatron-core's strategies with ours in the place of their own."""
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(original.strategies, name, getattr(ours, name)))
        yield


PLANNERS = ("MCoreSavePlanner", "MCoreLoadPlanner")
EVERYTHING = (*PLANNERS, "mcore_to_pyt_state_dict", "_unwrap_pyt_sharded_tensor", "_replace_state_dict_keys_with_sharded_keys",
              "_replace_sharded_keys_with_state_dict_keys", "_restore_dict_types")


def megatron_save(tree, path):
    path.mkdir(exist_ok=True)
    strategy = original.strategies.TorchDistSaveShardedStrategy("torch_dist", 1, thread_count=1)
    original.serialization.save(tree, str(path), strategy)


def megatron_load(request, path):
    return original.serialization.load(request, str(path))


def stored_chunks(path):
    """Name to size, dtype and sorted boxes that have elements; byte entries to None."""
    metadata = dcp.FileSystemReader(path).read_metadata()
    return {name: None if not hasattr(entry, "chunks") else
            (tuple(entry.size), entry.properties.dtype,
             sorted((tuple(c.offsets), tuple(c.sizes)) for c in entry.chunks if 0 not in c.sizes))
            for name, entry in metadata.state_dict_metadata.items()}


# ---- cases ----

@case
def torch_saves_and_loads_other_partitions(folder, rank):
    for kinds in (ours, original.mapping):
        path = folder / kinds.__name__
        save_with_torch(state(kinds, rank), path)
        dist.barrier()
        for axis in (0, 1):
            found = load_with_torch(emptied(state(kinds, rank, axis)), path)
            assert_equal(found, data_of(state(kinds, rank, axis)))
    assert stored_chunks(folder / ours.__name__) == stored_chunks(folder / original.mapping.__name__)


@case
def flattened_shards_are_saved_and_loaded_as_parts(folder, rank):
    data = WHOLE["rows"].reshape(-1)
    cut = (slice(0, 17), slice(17, 48))[rank]
    save_with_torch({"k": ours.ShardedTensor.from_rank_offsets_flat("k", data[cut].clone(), (8, 6), flattened_range=cut)}, folder / "c")
    dist.barrier()
    columns = ours.ShardedTensor.from_rank_offsets("k", torch.zeros(8, 3), (1, rank, 2))
    assert torch.equal(load_with_torch({"k": columns}, folder / "c")["k"], WHOLE["rows"].chunk(2, 1)[rank])
    other = (slice(0, 30), slice(30, 48))[rank]
    flat = ours.ShardedTensor.from_rank_offsets_flat("k", torch.zeros(other.stop - other.start), (8, 6), flattened_range=other)
    assert torch.equal(load_with_torch({"k": flat}, folder / "c")["k"], data[other])


@case
def planners_fit_into_megatrons_strategies(folder, rank):
    """Saved and loaded by the original alone, with our planners, and with all our functions: equal in every combination."""
    ways = {"original": (), "planners": PLANNERS, "everything": EVERYTHING}
    for way, names in ways.items():
        with our_names(*names):
            megatron_save(state(original.mapping, rank), folder / way)
    dist.barrier()
    chunks = {way: stored_chunks(folder / way) for way in ways}
    assert chunks["planners"] == chunks["original"] == chunks["everything"]
    for names in ways.values():
        for way in ways:
            with our_names(*names):
                found = megatron_load(emptied(state(original.mapping, rank, 1)), folder / way)
            assert_equal(found, data_of(state(original.mapping, rank, 1)))
    for way in ways:
        assert b"shardwright" not in (folder / way / ".metadata").read_bytes()


@case
def a_larger_grid_than_the_ranks_loads_into_megatron(folder, rank):
    """Local boxes are enough: the original's own load reads what our conversion wrote."""
    with our_names(*EVERYTHING):
        megatron_save({"layers": {n: original.mapping.ShardedTensor.from_rank_offsets(
            "layers", WHOLE["layers"][n].clone(), (0, n, 4), prepend_axis_num=1) for n in range(rank, 4, 2)}}, folder / "c")
    dist.barrier()
    request = {n: original.mapping.ShardedTensor.from_rank_offsets("layers", torch.zeros(3, 2), (0, n, 4), prepend_axis_num=1,
                                                                   replica_id=rank) for n in range(4)}
    found = megatron_load({"layers": request}, folder / "c")["layers"]
    assert all(torch.equal(found[n], WHOLE["layers"][n]) for n in range(4))


def without_empty(distribution):
    """What the original distributes of shards that have elements. Those without have no bytes, so all else is the same."""
    kept = [shard for shard, leaf in distribution.shard_to_metadata.items() if 0 not in leaf.local_shape]
    owners, group, metadata, holders = distribution
    return type(distribution)({s: owners[s] for s in owners if s in kept}, group & set(kept), {s: metadata[s] for s in kept},
                              {s: holders[s] for s in holders if s in kept})


@case
def the_distribution_is_that_of_the_original(folder, rank):
    def tree(kinds):
        found = state(kinds, rank)
        for n in range(20):
            found[f"w{n}"] = kinds.ShardedTensor.from_rank_offsets(f"w{n}", torch.ones(1 + n * 7 % 11), replica_id=(0, (rank + n) % 2))
            if (rank + n) % 3:
                found[f"v{n}"] = kinds.ShardedTensor.from_rank_offsets(f"v{n}", torch.ones(1 + n), replica_id=1 + rank)
        return found

    for loading in (False, True):
        expected = without_empty(original.exchange_utils.determine_main_replica_uniform_distribution(
            tree(original.mapping), dist.group.WORLD, loading))
        for kinds in (ours, original.mapping):
            found = ours.determine_main_replica_uniform_distribution(tree(kinds), None, loading)
            assert found.main_rank_for_shard == expected.main_rank_for_shard
            assert list(found.main_rank_for_shard) == list(expected.main_rank_for_shard)
            assert found.shards_in_this_group == expected.shards_in_this_group
            assert found.all_ranks_for_shard == expected.all_ranks_for_shard
        assert dict(found.shard_to_metadata) == expected.shard_to_metadata
    found = ours.determine_main_replica_uniform_distribution(tree(ours))
    applied = ours.distribute_main_replicas_with_precomputed_distribution(tree(ours), None, found)
    assert_equal(applied, with_owners(tree(ours), found, rank))
    everyone = [None, None]
    dist.all_gather_object(everyone, [leaf.replica_id for leaf in ours.nested_values(applied) if leaf.key == "same"])
    assert sorted(ids[0] for ids in everyone) == [0, 1]
    try:
        ours.distribute_main_replicas_with_precomputed_distribution(tree(ours), None, None)
    except ValueError as e:
        assert "must be not None" in str(e)
    else:
        raise AssertionError("a group of two ranks needs a distribution")


@case
def an_empty_shard_owns_nothing_of_its_neighbour(folder, rank):
    """Shards of 0 and 5 elements, which begin at one offset. In the original the empty one owns the other's elements."""
    def tree(fill=None):
        data = values(5)[:5 * rank] if fill is None else torch.full((5 * rank,), fill)
        return {"k": irregular(original.mapping, "k", data, (0,), (5,))}

    theirs = original.exchange_utils.determine_main_replica_uniform_distribution(tree(), dist.group.WORLD, False)
    assert theirs.main_rank_for_shard == {("k", (0,), None): 0}, "nobody saves what rank 1 holds"
    fully_parallel, strategies = original.fully_parallel, original.strategies
    distribution = ("determine_main_replica_uniform_distribution", "distribute_main_replicas_with_precomputed_distribution")
    with contextlib.ExitStack() as stack:
        for name in distribution:
            stack.enter_context(mock.patch.object(fully_parallel, name, own_in_place(name)))
        (folder / "c").mkdir(exist_ok=True)
        writer = strategies.TorchDistSaveShardedStrategy("torch_dist", 1, thread_count=1)
        original.serialization.save(tree(), str(folder / "c"), fully_parallel.FullyParallelSaveStrategyWrapper(writer),
                                    validate_access_integrity=False)
        reader = fully_parallel.FullyParallelLoadStrategyWrapper(strategies.TorchDistLoadShardedStrategy())
        found = original.serialization.load(tree(-1.0), str(folder / "c"), reader, validate_access_integrity=False)
    assert torch.equal(found["k"], values(5)[:5 * rank])


def own_in_place(name):
    """Our function where the original changes the caller's tree in place."""
    def applied(tree, group, distribution):
        new = ours.distribute_main_replicas_with_precomputed_distribution(tree, group, distribution)
        for leaf, changed in zip(ours.nested_values(tree), ours.nested_values(new), strict=True):
            leaf.replica_id = changed.replica_id

    return applied if name.startswith("distribute") else getattr(ours, name)


@case
def a_leaf_that_is_not_sharded_fails_on_all_ranks(folder, rank):
    """The original tells the other rank nothing, which then waits."""
    tree = state(ours, rank)
    if rank == 1:
        tree["stranger"] = 7
    try:
        ours.determine_global_metadata(tree)
    except shardwright.errors.InvalidArgumentError as e:
        assert e.details["rank"] == "1" and "a int is not sharded" in str(e)
    else:
        raise AssertionError("both ranks must fail")


@case
def a_broken_grid_is_refused_on_all_ranks(folder, rank):
    """The original checks on rank 0 only."""
    tree = {"rows": ours.ShardedTensor.from_rank_offsets("rows", torch.ones(2), (0, 2 * rank, 3))}
    local, everyone = ours.determine_global_metadata(tree)
    assert local == [tree["rows"].without_data()] and len(everyone) == 2
    theirs = [[original.mapping.ShardedTensor.from_rank_offsets("rows", torch.ones(2), (0, 2 * r, 3))] for r in range(2)]
    refused = []
    for check, metadata in ((ours.validate_sharding_integrity, everyone), (original.validation.validate_sharding_integrity, theirs)):
        try:
            check(metadata)
            refused.append(False)
        except original.mapping.CheckpointingException:
            refused.append(True)
    assert refused == [True, rank == 0]


@case
def whole_requests_pass_the_check(folder, rank):
    ours.validate_sharding_integrity(ours.determine_global_metadata(state(ours, rank))[1])
    ours.validate_sharding_integrity(ours.determine_global_metadata(state(original.mapping, rank))[1])


@case
def megatron_loads_what_the_library_wrote(folder, rank):
    """Its own reader, planner and strategy, along another axis, from a directory of shardwright's save; beside the index lie
    the two files that Megatron's own save adds."""
    path, mesh = folder / "c", init_device_mesh("cpu", (2,))
    report = shardwright.torch.save(
        {"rows": distribute_tensor(WHOLE["rows"], mesh, [Shard(0)]), "layers": distribute_tensor(WHOLE["layers"], mesh, [Shard(0)]),
         "uneven": distribute_tensor(WHOLE["uneven"], mesh, [Shard(0)]), "same": WHOLE["same"].clone(),
         "scalar": WHOLE["scalar"].clone()}, path, format="torch-dcp")
    assert report.generation and not (path / "metadata.json").exists()
    shardwright.torch.dcp.save({"own/shard_0_1": ({"list": [1, 2]},), "rows": distribute_tensor(WHOLE["rows"], mesh, [Shard(0)])},
                               checkpoint_id=folder / "objects")
    for place in (path, folder / "objects"):
        if rank == 0:
            core.save_config(core.CheckpointingConfig("torch_dist", 1), str(place))
            torch.save({"iteration": 7}, place / "common.pt")
    dist.barrier()
    kinds = original.mapping
    for axis in (0, 1):
        request = emptied(state(kinds, rank, axis, regular_only=True))
        del request["objects"]
        begin, count = UNEVEN[rank]
        request["uneven"] = irregular(kinds, "uneven", torch.zeros(count), (begin,), (7,))
        found = megatron_load(request, path)
        expected = data_of(state(kinds, rank, axis)) | {"iteration": 7}
        del expected["objects"], expected["many"]
        assert_equal(found, expected)
    request = {"rows": state(kinds, rank, 1)["rows"], "own": kinds.ShardedObject("own", None, (1,), (0,), replica_id=rank)}
    found = megatron_load(emptied(request), folder / "objects")
    assert found["own"] == {"list": [1, 2]} and torch.equal(found["rows"], WHOLE["rows"].chunk(2, 1)[rank])
