# SPDX-License-Identifier: Apache-2.0
"""What two ranks do with save and load of ours in a process that cannot import megatron-core."""
import json
import sys

import shardwright
import torch
import torch.distributed as dist
from shardwright.torch import megatron as ours
from own_vocabulary import expected, failure_of, full_state, made, request, same_on_all
from states import WHOLE, assert_equal

CASES = []


def case(function):
    CASES.append(function)
    return function


# ---- cases ----

@case
def megatron_core_cannot_be_imported(folder, rank):
    assert isinstance(failure_of(lambda: __import__("megatron.core")), ImportError)
    assert not [name for name in sys.modules if name.split(".")[0] == "megatron"]
    assert "megatron-core" in str(failure_of(ours.install))


@case
def what_was_saved_comes_back_along_another_axis(folder, rank):
    path = made(folder / "c")
    assert ours.save(full_state(rank), path, content_metadata={"layout": 1, "dp_cp_group": dist.group.WORLD}) is None
    found = ours.load(request(rank), path)
    assert found.pop("content_metadata") == {"layout": 1}
    assert_equal(found, expected(rank))
    assert sorted(p.name for p in (folder / "c").iterdir() if not p.name.startswith((".", "_"))) == ["common.pt", "metadata.json"]
    assert json.loads((folder / "c" / "metadata.json").read_text()) == {
        "sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}
    with shardwright.open(path) as checkpoint:
        assert checkpoint.format == "megatron"


@case
def the_common_state_can_be_an_object(folder, rank):
    """As megatron-core 0.19 writes it; a common.pt of the checkpoint before goes."""
    path = made(folder / "c")
    ours.save({"old": 1, **full_state(rank)}, path)
    ours.save(full_state(rank), path, common_layout="object")
    assert not (folder / "c" / "common.pt").exists()
    assert shardwright.open(path).format == "megatron"
    assert_equal(ours.load(request(rank), path), expected(rank))
    assert ours.load_common_state_dict(path) == {"iteration": 7, "args": {"lr": 0.5, 3: (1, 2)}}
    found, missing, unexpected = ours.load(request(rank), path, strict="return_all")
    assert (missing, unexpected) == (set(), set()) and found["iteration"] == 7


@case
def a_save_in_the_background_is_published_by_its_finalizers(folder, rank):
    path = made(folder / "c")
    tree = full_state(rank)
    pending = ours.save(tree, path, async_sharded_save=True, async_strategy="mcore")
    tree["sharded"]["rows"].data.fill_(-5)
    assert not ours.check_is_distributed_checkpoint(path)
    dist.barrier()
    queue = ours.AsyncCallsQueue()
    queue.schedule_async_request(pending)
    queue.maybe_finalize_async_calls(blocking=True)
    assert ours.check_is_distributed_checkpoint(path)
    assert_equal(ours.load(request(rank), path), expected(rank))


@case
def what_is_there_is_told_without_its_data(folder, rank):
    path = made(folder / "c")
    ours.save(full_state(rank), path, content_metadata={"a": {"b": (1, {2: None})}})
    tensors = ours.load_tensors_metadata(path)
    assert {key: (t.global_shape, t.dtype, t.data) for key, t in tensors.items()} == {
        key: (whole.shape, whole.dtype, None) for key, whole in WHOLE.items()}
    everything = ours.load_sharded_metadata(path)
    assert set(everything) == {*WHOLE, "own/shard_0_2", "own/shard_1_2", "shared/shard_0_1"}
    loaded = ours.load(everything, path, validate_access_integrity=False)
    assert torch.equal(loaded["rows"], WHOLE["rows"]) and loaded["own/shard_1_2"] == {"rank": 1, "list": [1, 1]}
    plain = ours.load_plain_tensors(path)
    assert set(plain) == {*WHOLE, "iteration", "args", "content_metadata"} and torch.equal(plain["many"], WHOLE["many"])
    assert ours.load_content_metadata(path) == {"a": {"b": (1, {2: None})}}
    assert ours.load_content_metadata(preloaded_state_dict=plain) == {"a": {"b": (1, {2: None})}}
    assert ours.load_content_metadata(preloaded_state_dict={}) is None
    assert isinstance(failure_of(ours.load_content_metadata), ValueError)


@case
def entries_of_a_prefix_are_removed(folder, rank):
    path = made(folder / "c")
    ours.save(full_state(rank), path, ours.TorchDistSaveShardedStrategy(separation_hint="rows"))
    if rank == 0:
        ours.remove_sharded_tensors(path, "rows")
    dist.barrier()
    assert set(ours.load_tensors_metadata(path)) == set(WHOLE) - {"rows"}
    _, missing, unexpected = ours.load(request(rank), path, strict="return_all")
    assert (missing, unexpected) == (set(), {"rows"})


@case
def mistakes_are_one_error_on_all_ranks_before_anything_happens(folder, rank):
    """Those of one rank, too; the original raises some on rank 0 only, where the others wait."""
    there, absent, empty = made(folder / "c"), str(folder / "absent"), made(folder / "empty")
    ours.save(full_state(rank), there)
    calls = {
        "does not exist": lambda: ours.save(full_state(rank), absent),
        "zarr": lambda: ours.save(full_state(rank), there, ("zarr", 1)),
        "common_strategy is not supported": lambda: ours.save(full_state(rank), there, None, ("torch", 1)),
        "fourth argument": lambda: ours.save(full_state(rank), there, None, False),
        "async_strategy": lambda: ours.save(full_state(rank), there, async_strategy="other"),
        "absent does not exist": lambda: ours.load(request(rank), absent),
        "is not a distributed checkpoint": lambda: ours.load(request(rank), empty),
        "Invalid strict flag": lambda: ours.load(request(rank), there, strict="other" if rank == 1 else "raise_all"),
        "no strategy is registered for load_sharded": lambda: ours.load(request(rank), there, ("zarr", 1)),
        "has no load": lambda: ours.load(request(rank), there, 5),
    }
    for words, call in calls.items():
        error = same_on_all(failure_of(call))
        assert words in str(error) and isinstance(error, shardwright.errors.ShardwrightError), (words, error)
    broken = full_state(rank)
    if rank == 1:
        broken["sharded"]["rows"].data = None
    assert "rows" in str(same_on_all(failure_of(lambda: ours.save(broken, there))))
    assert_equal(ours.load(request(rank), there), expected(rank))


@case
def inputs_stay_as_they_are(folder, rank):
    path = made(folder / "c")

    def halves(key, data, replica_id, flattened_range):
        return {n: ours.ShardedTensor.from_rank_offsets(key, part, (0, 2 * rank + n, 4)) for n, part in enumerate(data.chunk(2))}

    tree = full_state(rank) | {"local": ours.LocalNonpersistentObject(5), "list": [3, {}], "deep": {"f": ours.ShardedTensorFactory(
        "f", torch.ones(4), halves, lambda found: torch.cat([found[0], found[1]]))}}
    before = repr(tree), [id(leaf) for leaf in ours.nested_values(tree)]
    ours.save(tree, path, content_metadata={"x": 1})
    assert (repr(tree), [id(leaf) for leaf in ours.nested_values(tree)]) == before
    ours.load(tree, path, strict="log_all")  # equal values are loaded
    assert (repr(tree), [id(leaf) for leaf in ours.nested_values(tree)]) == before


@case
def lists_keep_their_positions_and_factories_merge(folder, rank):
    """A list of sharded and common values, which the original saves and cannot load."""
    path = made(folder / "c")

    def halves(key, data, replica_id, flattened_range):
        return [ours.ShardedTensor.from_rank_offsets(key, part, (0, 2 * rank + n, 4)) for n, part in enumerate(data.chunk(2))]

    def tree(value):
        whole = ours.ShardedTensor.from_rank_offsets("w", torch.full((2,), value), (0, rank, 2))
        factory = ours.ShardedTensorFactory("f", torch.full((4,), value), halves, torch.cat)
        return {"mixed": [{"x": whole}, 3, ours.LocalNonpersistentObject("here"), factory, {"common": 1}], "groups": [{"lr": 1}, {"lr": 2}]}

    ours.save(tree(4.0), path)
    found = ours.load(tree(0.0), path)
    assert torch.equal(found["mixed"][0]["x"], torch.full((2,), 4.0)) and torch.equal(found["mixed"][3], torch.full((4,), 4.0))
    assert (found["mixed"][1], found["mixed"][2], found["mixed"][4]) == (3, "here", {"common": 1})
    assert found["groups"] == [{"lr": 1}, {"lr": 2}]
    unlike = tree(0.0)
    unlike["mixed"] = unlike["mixed"][:2]
    assert "mixed" in str(same_on_all(failure_of(lambda: ours.load(unlike, path))))
