# SPDX-License-Identifier: Apache-2.0
"""What ranks do that save again and again: plans that Megatron's strategies keep from save to save, with its own planner and
with ours, of states that stay, that change on one rank and on all, and of jobs that were resumed.

A case takes its folder and the rank, asserts, and is named after what holds.
"""
import contextlib
import functools
import hashlib
import types
from unittest import mock

import originals
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from megatron.core.dist_checkpointing.strategies import state_dict_saver
from shardwright.torch import megatron as ours

original = types.SimpleNamespace(**originals.modules())
CASES = []


def case(function):
    CASES.append(function)
    return function


# ---- vocabulary ----

THEIRS = original.strategies.MCoreSavePlanner
OURS = ours.MCoreSavePlanner
CACHING = functools.partial(OURS, enable_plan_caching=True)
PLANNERS = {"original": THEIRS, "ours": OURS, "caching": CACHING}


def state(rank, value=1.0, private=torch.float32, **more):
    """What a rank saves: a part of rows, a layer, a tensor of its own with dtype `private`, an object of its own, a tensor
    and an object of rank 0, and `more`."""
    world, kinds = dist.get_world_size(), original.mapping
    part = kinds.ShardedTensor.from_rank_offsets
    tree = {"rows": part("rows", torch.full((2, 3), value + rank), (0, rank, world)),
            "layer": part("layers", torch.full((4,), value), (0, rank, world), prepend_axis_num=1),
            "own": kinds.ShardedObject("own", {"rank": rank, "value": value}, (world,), (rank,)),
            "same": part("same", torch.full((5,), value), replica_id=rank),
            "shared": kinds.ShardedObject("shared", "text", (1,), (0,), replica_id=rank)}
    if private:
        tree["private"] = part(f"private{rank}", torch.full((3,), value, dtype=private))
    return tree | {key: part(key, data) for key, data in more.items()}


@contextlib.contextmanager
def planner_is(planner):
    """Megatron's strategies with this planner; the flag that they reduce on a GPU stays on the CPU."""
    made, tensor = [], torch.tensor

    def make(*args, **kwargs):
        made.append(planner(*args, **kwargs))
        made[-1].create_global_plan = mock.Mock(wraps=made[-1].create_global_plan)
        return made[-1]

    def on_cpu(*args, **kwargs):
        return tensor(*args, **{name: value for name, value in kwargs.items() if (name, value) != ("device", "cuda")})

    with mock.patch.object(original.strategies, "MCoreSavePlanner", make), mock.patch.object(torch, "tensor", on_cpu):
        yield made


def strategy(cached_metadata=True, **options):
    return original.strategies.TorchDistSaveShardedStrategy("torch_dist", 1, thread_count=1, cached_metadata=cached_metadata,
                                                            **options)


def save(saver, planner, tree, path):
    """Saves; True where the coordinator merged the plans of all ranks for it."""
    request, merged = planned(saver, planner, tree, path)
    request.execute_sync()
    return merged


def planned(saver, planner, tree, path):
    """(what would write, whether the coordinator merged plans)."""
    path.mkdir(exist_ok=True)
    with planner_is(planner) as made:
        request = saver.async_save(tree, path)
    merged = [any(one.create_global_plan.called for one in made)]
    dist.broadcast_object_list(merged)
    return request, merged[0]


def content(path):
    """What a checkpoint is: entries, where they lie, what every rank planned, and digests of the files."""
    dist.barrier()
    metadata = dcp.FileSystemReader(path).read_metadata()
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.glob("*.distcp")}
    held = [(plan.items, plan.planner_data, plan.usable) for plan in getattr(metadata, "all_local_plans", [])]
    return metadata.state_dict_metadata, metadata.storage_data, metadata.planner_data, held, files


def fresh(tree, path):
    """The content of a checkpoint that Megatron makes without any cache."""
    save(strategy(cached_metadata=False), THEIRS, tree, path)
    return content(path)


def as_advised(saver):
    """What the refusal of a changed state asks for."""
    saver.cached_central_plan = saver.cached_local_plan = saver.cached_global_metadata = None
    saver.validated_cache_reuse = False


def refused(saver, planner, tree, path):
    """The error of this rank when it plans, or None. A rank that planned without one waits for the others to write."""
    try:
        with planner_is(planner):
            path.mkdir(exist_ok=True)
            saver.async_save(tree, path)
    except ours.CheckpointingException as e:
        return str(e)
    return None


CHANGES = {"new": {"more": torch.ones(2)}, "gone": {"private": None}, "described otherwise": {"private": torch.float16}}


def changed(rank, change, ranks):
    """The state of a rank when these ranks have changed."""
    return state(rank, **(change if rank in ranks else {}))


def changes(rank):
    """(name, word for what differs on this rank or None, maker of its tree): one rank has changed in each way, and all."""
    world = dist.get_world_size()
    cases = [((world - 1,), word) for word in CHANGES] + [(tuple(range(world)), "described otherwise")] * (world > 1)
    return [(f"{len(ranks)} {word}", word if rank in ranks else None, functools.partial(changed, rank, CHANGES[word], ranks))
            for ranks, word in cases]


# ---- cases ----

@case
def unchanged_states_are_saved_alike_by_every_planner(folder, rank):
    expected = fresh(state(rank), folder / "fresh")
    for name, planner in PLANNERS.items():
        for cached in (True, False):
            saver, merged = strategy(cached), []
            for number in range(3):
                path = folder / f"{name}{cached}{number}"
                merged.append(save(saver, planner, state(rank), path))
                assert content(path) == expected, (name, cached, number)
                assert b"shardwright" not in (path / ".metadata").read_bytes()
            assert merged == [True, True, not cached], (name, cached)


@case
def values_that_change_are_saved_by_plans_that_stay(folder, rank):
    expected = fresh(state(rank, 7.0), folder / "fresh")
    for name, planner in PLANNERS.items():
        saver = strategy()
        for number, value in enumerate((1.0, 2.0, 7.0)):
            save(saver, planner, state(rank, value), folder / f"{name}{number}")
        assert content(folder / f"{name}2") == expected


@case
def the_original_saves_a_changed_state_by_stale_plans(folder, rank):
    """Ours: a_changed_state_is_refused_and_saved_after_the_advice."""
    last = dist.get_world_size() - 1
    for saves_before in (1, 2):
        saver = strategy()
        for number in range(saves_before):
            save(saver, THEIRS, state(rank), folder / f"{saves_before}{number}")
        stale = folder / f"{saves_before}stale"
        save(saver, THEIRS, changed(rank, CHANGES["new"] | CHANGES["described otherwise"], (last,)), stale)
        entries = content(stale)[0]
        assert "more" not in entries and entries[f"private{last}"].properties.dtype is torch.float32
        try:
            save(saver, THEIRS, changed(rank, CHANGES["gone"], range(last + 1)), folder / f"{saves_before}gone")
        except ValueError as e:
            assert f"private{rank}" in str(e)
        else:
            raise AssertionError("a key that is gone is looked for")


@case
def a_changed_state_is_refused_and_saved_after_the_advice(folder, rank):
    for name, word, tree in changes(rank):
        expected = fresh(tree(), folder / f"fresh {name}")
        for planner, saves_before in ((OURS, 2), (CACHING, 1)):
            saver, path = strategy(), folder / f"{name} {saves_before}"
            for number in range(saves_before):
                save(saver, planner, state(rank), folder / f"before {name} {number}")
            error = refused(saver, planner, tree(), path)
            assert (error is not None) == (word is not None), error
            if word:
                assert f" is {word}; " in error and "let all ranks plan anew" in error, error
            dist.barrier()
            assert not (path / ".metadata").exists()
            as_advised(saver)
            assert save(saver, planner, tree(), path) and content(path) == expected


@case
def a_change_is_planned_anew_where_only_the_planner_caches(folder, rank):
    """Without `cached_metadata`: content decides, in any order of changes."""
    trees = {"as before": functools.partial(state, rank)} | {name: tree for name, _, tree in changes(rank)}
    expected = {name: fresh(tree(), folder / f"fresh {name}") for name, tree in trees.items()}
    for planner_name, planner in PLANNERS.items():
        for number, name in enumerate([*trees, "as before"]):
            path = folder / f"{planner_name} {number}"
            save(strategy(cached_metadata=False), planner, trees[name](), path)
            assert content(path) == expected[name], (planner_name, number, name)


@case
def a_resumed_job_takes_the_metadata_of_the_save_before(folder, rank):
    """The strategy of a new process is given what the load has read. Unchanged ranks gather nothing then."""
    for writer, planner in PLANNERS.items():
        path = folder / writer
        save(strategy(), planner, state(rank), path)
        expected = content(path)
        for reader, other in PLANNERS.items():
            saver = strategy()
            saver.cached_global_metadata = dcp.FileSystemReader(path).read_metadata()
            for number in range(2):
                again = folder / f"{writer} {reader} {number}"
                assert not save(saver, other, state(rank), again), (writer, reader)
                assert content(again) == expected, (writer, reader, number)


@case
def a_resumed_job_that_holds_something_else_is_planned_anew(folder, rank):
    save(strategy(), OURS, state(rank), folder / "before")
    for name, _, tree in changes(rank):
        expected = fresh(tree(), folder / f"fresh {name}")
        for planner in (OURS, CACHING):
            saver, merged = strategy(), []
            saver.cached_global_metadata = dcp.FileSystemReader(folder / "before").read_metadata()
            for number in range(3):
                path = folder / f"{name} {planner is CACHING} {number}"
                merged.append(save(saver, planner, tree(), path))
                assert content(path) == expected, (name, number)
            assert merged == [True, True, False]


@case
def replicas_that_the_coordinator_distributes_are_planned_once(folder, rank):
    """Central planning, where what a rank writes is less than what it holds."""
    def central(planner, tree, path, saver=None, run=save):
        saver = saver or strategy(keep_only_main_replica=False)
        return saver, run(saver, functools.partial(planner, can_run_decentralized_global_plan=False), tree, path)

    def held(**more):
        tree = {key: leaf for key, leaf in state(rank).items() if key not in ("shared", "layer")}
        return tree | {key: original.mapping.ShardedTensor.from_rank_offsets(key, data) for key, data in more.items()}

    central(THEIRS, held(), folder / "fresh")
    expected = content(folder / "fresh")
    more = held(more=torch.ones(2))
    central(THEIRS, more, folder / "more")
    with_more = content(folder / "more")
    for name, planner in PLANNERS.items():
        saver = None
        for number in range(6):
            if number == 3:  # plans anew with what the planner itself has cached
                as_advised(saver)
            saver, merged = central(planner, held(), folder / f"{name} {number}", saver)
            assert merged == (number % 3 < 2), (name, number)
            assert content(folder / f"{name} {number}") == expected, (name, number)
        if planner is THEIRS:
            central(planner, more, folder / f"{name} stale", saver)
            assert "more" not in content(folder / f"{name} stale")[0]
            continue
        for saves_before in (0, 1):
            _, error = central(planner, more, folder / f"{name} refused", saver, refused)
            assert "more is new; " in error
            as_advised(saver)
            central(planner, more, folder / f"{name} more {saves_before}", saver)
            assert content(folder / f"{name} more {saves_before}") == with_more
            as_advised(saver)
            central(planner, held(), folder / f"{name} again {saves_before}", saver)
            assert content(folder / f"{name} again {saves_before}") == expected
