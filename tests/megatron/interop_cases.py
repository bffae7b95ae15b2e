# SPDX-License-Identifier: Apache-2.0
"""Our save and load beside megatron-core's own, on two ranks: each loads what the other saved, and what only ours does."""
import argparse
import copy

import shardwright
import states
import torch
import torch.distributed as dist
from rank_cases import original
from shardwright.torch import megatron as ours
from states import assert_equal, data_of, emptied

CASES = []
SAVES = {"ours": ours.save, "theirs": original.serialization.save}
LOADS = {"ours": ours.load, "theirs": original.serialization.load}


def case(function):
    CASES.append(function)
    return function


# ---- vocabulary ----

def made(path):
    path.mkdir(exist_ok=True)
    dist.barrier()
    return str(path)


def halves_of(kinds, rank):
    """Two parts of a tensor that a factory stores apart, as SwiGLU has them."""
    def build(key, data, replica_id, flattened_range):
        first, second = data.chunk(2)
        return [kinds.ShardedTensor.from_rank_offsets(key, first, (0, rank, 4), replica_id=replica_id),
                kinds.ShardedTensor.from_rank_offsets(key, second, (0, rank + 2, 4), replica_id=replica_id)]
    return build


def full_state(kinds, rank, axis=0, fill=None):
    tree = {"model": states.state(kinds, rank, axis), "iteration": 7, 3: "three", "args": argparse.Namespace(lr=0.5, sizes=[1, 2]),
            "rng": torch.arange(4), "groups": [{"lr": 1.0, "params": kinds.LocalNonpersistentObject([rank])}]}
    data = torch.arange(4.0) + 4 * rank if fill is None else torch.full((4,), fill)
    tree["fc1"] = kinds.ShardedTensorFactory("fc1", data, halves_of(kinds, rank), torch.cat)
    return tree


def request(kinds, rank, axis=1):
    tree = full_state(kinds, rank, axis, -1.0)
    tree["model"] = emptied(tree["model"])
    return tree


def expected(rank, axis=1):
    return {"model": data_of(states.state(ours, rank, axis)), "iteration": 7, 3: "three",
            "args": argparse.Namespace(lr=0.5, sizes=[1, 2]), "rng": torch.arange(4), "groups": [{"lr": 1.0, "params": [rank]}],
            "fc1": torch.arange(4.0) + 4 * rank}


def failure_of(function):
    try:
        function()
    except Exception as e:
        return e
    raise AssertionError("it was to fail")


# ---- cases ----

@case
def each_loads_what_the_other_saved(folder, rank):
    """With descriptors of both packages, content metadata and factories, in every combination."""
    for who, save in SAVES.items():
        for name, kinds in (("our", ours), ("their", original.mapping)):
            if who == "theirs" and kinds is ours:
                continue
            path = made(folder / f"{who}-{name}")
            save(full_state(kinds, rank), path, content_metadata={"layout": (1, {2: None})})
            for reader, load in LOADS.items():
                found = load(request(original.mapping if reader == "theirs" else kinds, rank), path)
                assert found.pop("content_metadata") == {"layout": (1, {2: None})}
                assert_equal(found, expected(rank))
            assert original.serialization.load_content_metadata(path) == ours.load_content_metadata(path)
            assert_equal(ours.load_common_state_dict(path), original.serialization.load_common_state_dict(path))
    with open(folder / "ours-our" / "metadata.json") as one, open(folder / "theirs-their" / "metadata.json") as other:
        assert one.read() == other.read()


@case
def fully_parallel_wrappers_of_both_take_each_other(folder, rank):
    """Ours inside the original's save and load, around its own strategies, and the other way."""
    kinds = original.mapping
    wrappers = {"ours": ours.FullyParallelSaveStrategyWrapper, "theirs": original.fully_parallel.FullyParallelSaveStrategyWrapper}
    strategies = {"ours": ours.TorchDistSaveShardedStrategy, "theirs": original.strategies.TorchDistSaveShardedStrategy}
    for who, save in SAVES.items():
        for wrapper in wrappers:
            for strategy in strategies:
                path = made(folder / f"{who}-{wrapper}-{strategy}")
                save(full_state(kinds, rank), path, wrappers[wrapper](strategies[strategy]("torch_dist", 1)))
                assert_equal(ours.load(request(kinds, rank), path), expected(rank))
                assert_equal(original.serialization.load(request(kinds, rank), path), expected(rank))
    for reader, load in LOADS.items():
        for inner in (ours.TorchDistLoadShardedStrategy(), original.strategies.TorchDistLoadShardedStrategy()):
            for algorithm in ("broadcast", "gather_rounds", "gather_object"):
                wrapper = ours.FullyParallelLoadStrategyWrapper(inner, exchange_algo=algorithm)
                assert_equal(load(request(kinds, rank), path, wrapper), expected(rank))


@case
def the_original_changes_what_it_is_given(folder, rank):
    tree = full_state(original.mapping, rank)
    path = made(folder / "c")
    before = {name: type(value) for name, value in tree.items()}
    ours.save(tree, path, content_metadata={"a": 1})
    assert {name: type(value) for name, value in tree.items()} == before
    original.serialization.save(tree, path, content_metadata={"a": 1})
    assert "content_metadata" in tree and isinstance(tree["fc1"], list)


@case
def a_list_of_sharded_and_other_values_is_loaded_by_ours_only(folder, rank):
    """Whoever saved it."""
    kinds = original.mapping

    def tree(fill):
        return {"mixed": [{"x": kinds.ShardedTensor.from_rank_offsets("x", torch.full((2,), fill), (0, rank, 2))}, 3]}

    for who, save in SAVES.items():
        path = made(folder / who)
        save(tree(1.0), path)
        assert isinstance(failure_of(lambda: original.serialization.load(tree(0.0), path)), ValueError)
        found = ours.load(tree(0.0), path)
        assert torch.equal(found["mixed"][0]["x"], torch.ones(2)) and found["mixed"][1] == 3


@case
def a_missing_common_state_is_named(folder, rank):
    kinds = original.mapping
    path = made(folder / "c")
    ours.save(full_state(kinds, rank), path)
    dist.barrier()
    if rank == 0:
        (folder / "c" / "common.pt").unlink()
    dist.barrier()
    assert type(failure_of(lambda: original.serialization.load(request(kinds, rank), path))) is AttributeError
    for call in (lambda: ours.load(request(kinds, rank), path), lambda: ours.load_common_state_dict(path)):
        error = failure_of(call)
        assert "common.pt" in str(error) and isinstance(error, (ours.CheckpointingException, shardwright.errors.NotFoundError))


@case
def what_the_original_cannot_ask_with_this_torch_is_answered(folder, rank):
    """Metadata, and every strictness but the default: TypeError or AttributeError there."""
    kinds = original.mapping
    path = made(folder / "c")
    ours.save(full_state(kinds, rank), path, ours.TorchDistSaveShardedStrategy(separation_hint="rows"))
    for name in ("load_tensors_metadata", "load_sharded_metadata", "load_plain_tensors"):
        assert isinstance(failure_of(lambda name=name: getattr(original.serialization, name)(path)), TypeError)
        assert "rows" in getattr(ours, name)(path)
    for strict in ("log_all", "raise_all", "ignore_all", "return_all", "log_unexpected", "raise_unexpected", "return_unexpected"):
        assert isinstance(failure_of(lambda strict=strict: original.serialization.load(request(kinds, rank), path, strict=strict)), TypeError)
        flag = original.validation.StrictHandling(strict)
        found = ours.load(copy.deepcopy(request(kinds, rank)), path, strict=flag)
        assert_equal(found[0] if strict.startswith("return") else found, expected(rank))
    dist.barrier()
    if rank == 0:
        assert isinstance(failure_of(lambda: original.serialization.remove_sharded_tensors(path, "rows")), (AttributeError, TypeError))
    dist.barrier()


@case
def mistakes_are_told_on_one_rank_only_by_the_original(folder, rank):
    absent = str(folder / "absent")
    if rank == 0:  # rank 1 would go on, and wait for rank 0
        error = failure_of(lambda: original.serialization.save(full_state(original.mapping, rank), absent))
        assert type(error) is FileNotFoundError, repr(error)
    dist.barrier()
    error = failure_of(lambda: ours.save(full_state(original.mapping, rank), absent))
    assert isinstance(error, original.mapping.CheckpointingException) and "does not exist" in str(error)


@case
def strategies_of_the_original_are_replaced_by_ours_after_install(folder, rank):
    kinds = original.mapping
    with ours.install():
        from megatron.core.dist_checkpointing.strategies.fully_parallel import FullyParallelSaveStrategyWrapper
        assert FullyParallelSaveStrategyWrapper is ours.FullyParallelSaveStrategyWrapper
        path = made(folder / "c")
        original.serialization.save(full_state(kinds, rank), path, FullyParallelSaveStrategyWrapper(
            original.strategies.TorchDistSaveShardedStrategy("torch_dist", 1)))
        assert_equal(original.serialization.load(request(kinds, rank), path, strict="raise_all"), expected(rank))
        assert "rows" in original.serialization.load_plain_tensors(path)
    assert_equal(original.serialization.load(request(kinds, rank), path), expected(rank))
