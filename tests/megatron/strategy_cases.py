# SPDX-License-Identifier: Apache-2.0
"""What two ranks do with our strategies inside megatron-core's own save and load, and with our queues."""
import json
from unittest import mock

import rank_cases
import shardwright
import states
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing.strategies import async_utils, base, common
from rank_cases import original
from shardwright.torch import megatron as ours
from shardwright.torch.megatron import _directory, loading, saving
from shardwright.torch.megatron.strategies import torch_dist
from states import assert_equal, data_of, emptied, state

CASES = []


def case(function):
    CASES.append(function)
    return function


# ---- vocabulary ----

KINDS = original.mapping


def full_state(rank, axis=0):
    """Sharded entries, and common ones, which Megatron stores by itself."""
    return {"sharded": state(KINDS, rank, axis), "iteration": 7}


def saver(**options):
    return ours.TorchDistSaveShardedStrategy("torch_dist", 1, **options)


def made(path):
    path.mkdir(exist_ok=True)
    dist.barrier()
    return str(path)


def save(tree, path, strategy, **options):
    made(path)
    return original.serialization.save(tree, str(path), strategy, **options)


def load(rank, path, strategy, axis=1):
    request = {"sharded": emptied(state(KINDS, rank, axis))}
    return original.serialization.load(request, str(path), strategy)


def expected(rank, axis=1):
    return {"sharded": data_of(state(KINDS, rank, axis)), "iteration": 7}


def failure_of(function):
    try:
        function()
    except Exception as e:
        return e
    raise AssertionError("it was to fail")


# ---- cases ----

@case
def each_loads_what_the_other_saved(folder, rank):
    """Along another axis, in all four combinations; digests hold, and nothing of ours is in the index."""
    savers = {"ours": saver(), "theirs": original.strategies.TorchDistSaveShardedStrategy("torch_dist", 1)}
    for name, strategy in savers.items():
        save(full_state(rank), folder / name, strategy)
        for loader in (ours.TorchDistLoadShardedStrategy(), original.strategies.TorchDistLoadShardedStrategy()):
            assert_equal(load(rank, folder / name, loader), expected(rank))
    assert rank_cases.stored_chunks(folder / "ours") == rank_cases.stored_chunks(folder / "theirs")
    assert b"shardwright" not in (folder / "ours" / ".metadata").read_bytes()
    saver().save(state(KINDS, rank), folder / "alone")  # without Megatron's marker it is a directory of torch DCP
    with shardwright.open(folder / "alone") as checkpoint:
        report = checkpoint.verify(deep=True).to_dict()
        assert checkpoint.format == "torch-dcp" and report["digests"] and not report["damage"], report


@case
def a_checkpoint_is_replaced_and_its_marker_goes_first(folder, rank):
    """The marker would vouch for the common state of one checkpoint and the tensors of another."""
    for options in ({}, {"separation_hint": "rows"}):
        path = folder / f"c{len(options)}"
        for value in (1.0, 2.0):
            tree = full_state(rank)
            tree["sharded"]["rows"].data.fill_(value)
            save(tree, path, saver(**options))
            assert torch.equal(load(rank, path, ours.TorchDistLoadShardedStrategy())["sharded"]["rows"], torch.full((8, 3), value))
        dist.barrier()
        broken = state(KINDS, rank)
        if rank == 1:
            broken["rows"].data = None
        failure_of(lambda: saver(**options).save(broken, path))
        assert (path / "metadata.json").exists(), "nothing has been touched"
        dist.barrier()
        request = saver(**options).async_save(state(KINDS, rank), path)
        assert not (path / "metadata.json").exists()
        request.execute_sync()


@case
def a_state_that_grows_is_saved_whole_however_often_it_was_saved(folder, rank):
    """With `cached_metadata` the original leaves a key out that came after the second save."""
    strategy = saver(cached_metadata=True)
    for count in range(4):
        tree = full_state(rank)
        if count == 3:
            tree["sharded"]["late"] = KINDS.ShardedTensor.from_rank_offsets("late", torch.full((2,), 1.0 + rank), (0, rank, 2))
        save(tree, folder / f"c{count}", strategy)
    request = {"late": KINDS.ShardedTensor.from_rank_offsets("late", torch.zeros(4), replica_id=rank)}
    found = ours.TorchDistLoadShardedStrategy().load(request, folder / "c3")
    assert torch.equal(found["late"], torch.tensor([1.0, 1, 2, 2]))


@case
def ours_pass_the_checks_of_the_original(folder, rank):
    assert isinstance(saver(), base.AsyncSaveShardedStrategy) and isinstance(saver(), base.SaveShardedStrategy)
    assert isinstance(ours.TorchDistLoadShardedStrategy(), base.LoadShardedStrategy)
    assert not isinstance(saver(), base.LoadShardedStrategy)
    ours.register_default_torch_strategies()
    found = ours.get_default_strategy(ours.StrategyAction.SAVE_SHARDED, "torch_dist", 1)
    assert type(found) is ours.TorchDistSaveShardedStrategy and (found.backend, found.version) == ("torch_dist", 1)
    assert "zarr" in str(failure_of(lambda: ours.get_default_strategy(ours.StrategyAction.LOAD_SHARDED, "zarr", 1)))
    wrapped = original.fully_parallel.FullyParallelSaveStrategyWrapper(saver())
    save(full_state(rank), folder / "c", wrapped)
    reader = original.fully_parallel.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(),
                                                                      exchange_algo="gather_object")
    assert_equal(load(rank, folder / "c", reader), expected(rank))


@case
def what_fails_on_one_rank_raises_on_both_and_leaves_no_marker(folder, rank):
    def broken(tree):
        if rank == 1:
            tree["sharded"]["rows"].data = None
        return tree

    for options in ({}, {"separation_hint": "rows"}):
        for background in (False, True):
            error = failure_of(lambda: save(broken(full_state(rank)), folder / "c", saver(**options),
                                            validate_access_integrity=False, async_sharded_save=background))
            assert "rows" in str(error) and isinstance(error, shardwright.errors.ShardwrightError), error
    assert not (folder / "c" / "metadata.json").exists()
    (folder / "file").write_text("")
    dist.barrier()
    for options in ({}, {"separation_hint": "rows"}):
        error = failure_of(lambda: saver(**options).save(state(KINDS, rank), folder / "file" / "c"))
        assert "file" in str(error), error
        request = saver(**options).async_save(state(KINDS, rank), folder / "file" / "c")
        calls, later = ours.AsyncCallsQueue(), []
        request.add_finalize_fn(lambda: later.append(1))
        calls.schedule_async_request(request)
        error = failure_of(lambda: calls.maybe_finalize_async_calls(blocking=True))
        assert "file" in str(error) and later == [] and calls.get_num_unfinalized_calls() == 0
    wrong = {"sharded": emptied(state(KINDS, rank))}
    if rank == 1:
        wrong["sharded"]["rows"].local_shape = (9, 9)
    error = failure_of(lambda: ours.TorchDistLoadShardedStrategy().load(wrong["sharded"], folder / "c"))
    assert "rows" in str(error), error


@case
def one_call_lets_the_original_use_ours(folder, rank):
    """Without a strategy, in the background too; all of it is undone."""
    names = [(original.strategies, "TorchDistSaveShardedStrategy"), (original.strategies, "TorchDistLoadShardedStrategy"),
             (async_utils, "AsyncCallsQueue"), (common.TorchCommonSaveStrategy, "save_common"),
             *((module, name) for module in (dist_checkpointing, original.serialization)
               for name in ("save", "load", "load_common_state_dict", "load_plain_tensors", "remove_sharded_tensors"))]
    before = [getattr(owner, name) for owner, name in names]
    with ours.install():
        assert isinstance(failure_of(ours.install), shardwright.errors.FailedPreconditionError)
        assert dist_checkpointing.save is saving.save and original.serialization.load is loading.load
        for background in (False, True):
            for count in (1.0, 2.0):
                tree = full_state(rank)
                tree["sharded"]["rows"].data.fill_(count)
                request = save(tree, folder / f"c{background}", None, async_sharded_save=background)
                if background:
                    calls = async_utils.AsyncCallsQueue()
                    calls.schedule_async_request(request)
                    calls.maybe_finalize_async_calls(blocking=True)
                found = load(rank, folder / f"c{background}", None)
                assert torch.equal(found["sharded"]["rows"], torch.full((8, 3), count)) and found["iteration"] == 7
            assert list((folder / f"c{background}").glob(".shardwright.*.digests"))
            assert not list((folder / f"c{background}").glob("*.tmp"))
        by_name = before[names.index((original.serialization, "save"))]  # as a module has it that imported it before
        by_name(full_state(rank), str(folder / "cTrue"))
        assert_equal(load(rank, folder / "cTrue", None), expected(rank))
    assert [getattr(owner, name) for owner, name in names] == before
    save(full_state(rank), folder / "theirs", None)
    assert not list((folder / "theirs").glob(".shardwright.*"))


@case
def no_marker_vouches_for_a_mixture_when_the_job_ends_anywhere(folder, rank):
    """Each step of publishing fails in turn. Then Megatron sees the old checkpoint, or none."""
    tree = full_state(rank)
    tree["sharded"]["rows"].data.fill_(9)
    for number, (name, file) in enumerate([("remove", "metadata.json"), ("replace", "common.pt"), ("replace", "metadata.json")]):
        path = folder / f"c{number}"
        with ours.install():
            save(full_state(rank), path, None)
        true = getattr(_directory.Directory, name)

        def ends(directory, given, *arguments, file=file, true=true):
            if given == file:
                raise OSError("the job ends here")
            return true(directory, given, *arguments)

        with mock.patch.object(_directory.Directory, name, ends), ours.install():
            assert "the job ends here" in str(failure_of(lambda: save(tree | {"iteration": 8}, path, None)))
        dist.barrier()
        assert (path / "metadata.json").exists() == (name == "remove")
        if name == "remove":
            assert_equal(load(rank, path, None), expected(rank))
        dist.barrier()


@case
def a_save_that_fails_leaves_the_checkpoint_before(folder, rank):
    """Its marker comes back where its data is still what the index says: in the background, too."""
    for background in (False, True):
        path = folder / f"c{background}"
        ours.save(full_state(rank), made(path))
        torn = json.loads((path / "metadata.json").read_text())
        dist.barrier()
        with mock.patch.object(torch_dist.calls, "save_async" if background else "save", side_effect=OSError("no room")):
            failure_of(lambda: ours.save({**full_state(rank), "iteration": 8}, path, async_sharded_save=background))
        dist.barrier()
        assert json.loads((path / "metadata.json").read_text()) == torn
        assert_equal(load(rank, path, None), expected(rank))
        dist.barrier()


@case
def entries_of_a_hint_lie_apart_and_can_be_removed(folder, rank):
    for background in (False, True):
        path = folder / f"c{background}"
        request = save(full_state(rank), path, saver(separation_hint="rows"), async_sharded_save=background)
        if background:
            request.execute_sync()
        names = sorted(file.name for file in path.glob("*.distcp"))
        assert [sum(name.startswith(what) for name in names) for what in ("rows__", "__")] == [2, 2], names
        assert_equal(load(rank, path, original.strategies.TorchDistLoadShardedStrategy()), expected(rank))
        with shardwright.open(path) as checkpoint:
            assert checkpoint.format == "megatron" and checkpoint.world_size == 2
        before = dcp.FileSystemReader(path).read_metadata()
        dist.barrier()
        if rank == 0:
            ours.TorchDistLoadShardedStrategy().remove_sharded_tensors(path, "rows")
        dist.barrier()
        after = dcp.FileSystemReader(path).read_metadata()
        assert [after.version, after.storage_meta.save_id] == [before.version, before.storage_meta.save_id] and before.version
        assert set(before.state_dict_metadata) - set(after.state_dict_metadata) == {"rows"}
        assert not list(path.glob("rows*"))
        request = {"sharded": emptied(state(KINDS, rank, 1))}
        del request["sharded"]["rows"]
        found = original.serialization.load(request, str(path))
        wanted = expected(rank)
        del wanted["sharded"]["rows"]
        assert_equal(found, wanted)
        assert "rows" in str(failure_of(lambda: load(rank, path, ours.TorchDistLoadShardedStrategy())))


@case
def metadata_is_a_request_of_everything(folder, rank):
    save(full_state(rank), folder / "c", saver())
    strategy = ours.TorchDistLoadShardedStrategy()
    tensors = strategy.load_tensors_metadata(folder / "c")
    assert {key: (t.global_shape, t.dtype) for key, t in tensors.items()} == {
        key: (whole.shape, whole.dtype) for key, whole in states.WHOLE.items()}
    found = strategy.load_sharded_metadata(folder / "c")
    assert set(found) == {*states.WHOLE, "own/shard_0_2", "own/shard_1_2", "shared/shard_0_1"}
    loaded = strategy.load({key: value for key, value in found.items()}, folder / "c")
    assert torch.equal(loaded["rows"], states.WHOLE["rows"]) and loaded["own/shard_1_2"] == {"rank": 1, "list": [1, 1]}
    assert set(strategy.cached_global_metadata.state_dict_metadata) == set(found)
