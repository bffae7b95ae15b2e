# SPDX-License-Identifier: Apache-2.0
"""Cases of shardwright.torch.dcp over several ranks: the behaviour that torch's own tests of DCP ask for, with our save, load,
writers, readers and planners; and both ways between torch and us."""
import dataclasses
import logging
import os

import shardwright
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as theirs
from cases import agreed, empty_like, placed, raised, ranks, whole
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec, EnumerableShardingSpec, ShardMetadata
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

import shardwright.torch.dcp as dcp

FORMATS = ("torch-dcp", "native")


# ---- vocabulary ----

class Warnings(logging.Handler):
    """Records of shardwright.torch.dcp while it is in use."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())

    def __enter__(self):
        logging.getLogger("shardwright.torch.dcp").addHandler(self)
        return self.texts

    def __exit__(self, *_):
        logging.getLogger("shardwright.torch.dcp").removeHandler(self)


def line():
    return init_device_mesh("cpu", (dist.get_world_size(),))


def layouts():
    """Meshes and placements of this world: FSDP, TP, DDP, and with four ranks HSDP, FSDP and TP."""
    found = [(line(), (Shard(0),)), (line(), (Shard(1),)), (line(), (Replicate(),))]
    if dist.get_world_size() == 4:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
        found += [(grid, (Replicate(), Shard(0))), (grid, (Shard(0), Shard(1))), (grid, (Shard(1), Replicate())),
                  (grid, (Shard(0), Shard(0))), (grid, (_StridedShard(0, split_factor=2), Shard(0)))]
    return found


def state_on(layout, start=0):
    mesh, placements = layout
    plain = [Shard(p.dim) if isinstance(p, _StridedShard) else p for p in placements]
    tensors = {"even": whole((8, 8), start=start), "uneven": whole((10, 7), torch.bfloat16, start),
               "few": whole((1, 3), torch.int64, start)}
    made = {name: placed(value, mesh, *plain) for name, value in tensors.items()}
    return {"model": made, "plain": whole((5,), start=start), "lists": [whole((2,), start=start), {"lr": 0.1 + start}],
            "step": start, "text": "x"}


def emptied(layout):
    state = state_on(layout)
    return {"model": {name: empty_like(value) for name, value in state["model"].items()}, "plain": torch.zeros(5),
            "lists": [torch.zeros(2), {"lr": None}], "step": None, "text": None}


def check(found, start):
    for name, (shape, dtype) in {"even": ((8, 8), torch.float32), "uneven": ((10, 7), torch.bfloat16),
                                 "few": ((1, 3), torch.int64)}.items():
        assert torch.equal(found["model"][name].full_tensor(), whole(shape, dtype, start)), name
    assert torch.equal(found["plain"], whole((5,), start=start)) and torch.equal(found["lists"][0], whole((2,), start=start))
    assert found["lists"][1] == {"lr": 0.1 + start} and found["step"] == start and found["text"] == "x"


# ---- both ways ----

@ranks(1, 2, 3, 4)
def what_torch_writes_we_read_and_the_reverse(folder):
    for i, layout in enumerate(layouts()):
        other = layouts()[(i + 1) % len(layouts())]
        theirs.save(state_on(layout, i), checkpoint_id=folder / f"torch{i}")
        dcp.save(state_on(layout, i), checkpoint_id=folder / f"ours{i}")
        for who, load in (("torch", dcp.load), ("ours", theirs.load), ("ours", dcp.load)):
            for wanted in (layout, other):
                target = emptied(wanted)
                load(target, checkpoint_id=folder / f"{who}{i}")
                check(target, i)
        mine, its = (shardwright.open(folder / f"{who}{i}").digest() for who in ("ours", "torch"))
        assert mine == its and len(mine) == 5


@ranks(2)
def packed_elements_go_into_every_placement(folder):
    packed = torch.arange(48, dtype=torch.uint8).reshape(6, 8)

    def pairs(value, placement):
        local = placed(value, line(), placement).to_local().contiguous().view(torch.float4_e2m1fn_x2)
        return DTensor.from_local(local, line(), [placement], run_check=False, shape=(6, 8), stride=(8, 1))

    for placement in (Shard(0), Shard(1)):
        for save in (dcp.save, theirs.save):
            path = folder / f"{placement.dim}{save.__module__}"
            save({"p": pairs(packed, placement), "whole": packed.view(torch.float4_e2m1fn_x2)}, checkpoint_id=path)
            for other in (Shard(0), Shard(1)):
                target = {"p": pairs(torch.zeros_like(packed), other),
                          "whole": torch.zeros_like(packed).view(torch.float4_e2m1fn_x2)}
                dcp.load(target, checkpoint_id=path)
                assert torch.equal(target["p"].to_local().view(torch.uint8), placed(packed, line(), other).to_local())
                assert torch.equal(target["whole"].view(torch.uint8), packed)
    error = raised(lambda: dcp.save({"p": pairs(packed, Shard(0))}, checkpoint_id=folder / "n", format="native"))
    assert isinstance(error, shardwright.InvalidArgumentError) and "format: a save of tensors" in str(error), error


@ranks(2)
def default_planners_of_both_are_taken_as_what_they_say(folder):
    layout = layouts()[0]
    for i, planner in enumerate((dcp.DefaultSavePlanner(), theirs.DefaultSavePlanner(), dcp.DefaultSavePlanner(owner="balanced"),
                                 theirs.DefaultSavePlanner(dedup_save_to_lowest_rank=True))):
        for format in FORMATS:
            dcp.save(state_on(layout, i), checkpoint_id=folder / f"{format}{i}", planner=planner, format=format)
            for reading in (dcp.DefaultLoadPlanner(), theirs.DefaultLoadPlanner()):
                target = emptied(layouts()[1])
                dcp.load(target, checkpoint_id=folder / f"{format}{i}", planner=reading)
                check(target, i)
    with shardwright.open(folder / f"native{i}") as checkpoint:
        assert [chunk.rank for chunk in checkpoint["plain"].chunks()] == [0]
    error = raised(lambda: dcp.save({"n": dist.get_rank()}, checkpoint_id=folder / "d",
                                    planner=dcp.DefaultSavePlanner(verify_replicas="error")))
    assert isinstance(error, ValueError) and "n" in str(error), error


@ranks(2, 4)
def native_checkpoints_go_round(folder):
    for i, layout in enumerate(layouts()):
        found = dcp.save(state_on(layout, i), checkpoint_id=folder / f"c{i}", format="native")
        assert os.path.exists(folder / f"c{i}" / "manifest.shw")
        target = emptied(layouts()[i - 1])
        dcp.load(target, checkpoint_id=folder / f"c{i}")
        check(target, i)
        assert found.state_dict_metadata["model.even"].size == (8, 8)


@ranks(1, 2)
def our_writers_and_readers_work_inside_torch_and_torchs_inside_ours(folder):
    layout = layouts()[0]
    theirs.save(state_on(layout, 1), storage_writer=dcp.FileSystemWriter(folder / "a", thread_count=2))
    dcp.save(state_on(layout, 1), storage_writer=theirs.FileSystemWriter(folder / "b", thread_count=2))
    dcp.save(state_on(layout, 1), storage_writer=dcp.FileSystemWriter(folder / "c", single_file_per_rank=False))
    for name in "abc":
        for load, kind in ((theirs.load, dcp), (dcp.load, theirs), (dcp.load, dcp)):
            target = emptied(layouts()[1])
            load(target, storage_reader=kind.FileSystemReader(folder / name))
            check(target, 1)
    dcp.save(state_on(layout, 2), checkpoint_id=folder / "n", format="native")
    target = emptied(layout)
    theirs.load(target, storage_reader=dcp.FileSystemReader(folder / "n"))
    check(target, 2)


@ranks(2)
def a_save_replaces_a_checkpoint_and_leaves_other_files_alone(folder):
    for start in (1, 2):
        dcp.save(state_on(layouts()[0], start), checkpoint_id=folder / "c")
        if dist.get_rank() == 0:
            (folder / "c" / "notes.txt").write_text("mine")
        dist.barrier()
    names = agreed(sorted(os.listdir(folder / "c")))
    assert "notes.txt" in names and sum(name.endswith(".distcp") for name in names) == 2, names
    target = emptied(layouts()[1])
    theirs.load(target, checkpoint_id=folder / "c")
    check(target, 2)
    error = raised(lambda: dcp.save({"w": whole()}, storage_writer=dcp.FileSystemWriter(folder / "c", overwrite=False)))
    assert isinstance(error, RuntimeError) and isinstance(error, shardwright.AlreadyExistsError), error
    assert "Checkpoint already exists" in str(error)


@ranks(2)
def saves_without_collectives_leave_an_index_per_rank(folder):
    rank = dist.get_rank()
    state = {"own": whole((3,), start=rank), "n": rank}
    dcp.save(state, checkpoint_id=folder / "c", use_collectives=False)
    assert os.path.exists(folder / "c" / f"__{rank}.metadata") and not os.path.exists(folder / "c" / ".metadata")
    for load in (dcp.load, theirs.load):
        target = {"own": torch.zeros(3), "n": None}
        load(target, checkpoint_id=folder / "c")
        assert torch.equal(target["own"], whole((3,), start=rank)) and target["n"] == rank
    sharded = {"s": placed(whole(), line(), Shard(0)), "n": rank}
    dcp.save(sharded, checkpoint_id=folder / "s", use_collectives=False)
    target = {"s": torch.zeros(10, 7), "n": None}
    dcp.load(target, checkpoint_id=folder / "s", no_dist=True)  # one rank sees what two left together
    assert torch.equal(target["s"], whole()) and target["n"] == 0
    found = dcp.state_dict_loader._load_state_dict_from_keys(checkpoint_id=folder / "s", no_dist=True)
    assert torch.equal(found["s"], whole()) and found["n"] == 0
    theirs.save(state, checkpoint_id=folder / "t", use_collectives=False)
    target = {"own": torch.zeros(3), "n": None}
    dcp.load(target, checkpoint_id=folder / "t")
    assert torch.equal(target["own"], whole((3,), start=rank)) and target["n"] == rank


def loads_by_both(path, rank, group=None):
    for load in (dcp.load, theirs.load):
        target = {"own": torch.zeros(3), "n": None, "size": None}
        load(target, checkpoint_id=path, process_group=group)
        assert torch.equal(target["own"], whole((3,), start=rank)) and target["n"] == rank, (load, target)
        assert type(target["size"]) is torch.Size and target["size"] == torch.Size([rank, 2])


@ranks(2)
def indexes_of_single_ranks_are_written_in_and_by_torchs_save(folder):
    rank = dist.get_rank()
    state = {"own": whole((3,), start=rank), "n": rank, "size": torch.Size([rank, 2])}
    writers = {"ours in theirs": (theirs.save, dcp.FileSystemWriter), "theirs in ours": (dcp.save, theirs.FileSystemWriter),
               "ours": (dcp.save, dcp.FileSystemWriter), "theirs": (theirs.save, theirs.FileSystemWriter)}
    kept = {}
    for name, (save, kind) in writers.items():
        path = folder / name
        save(dict(state), storage_writer=kind(path), use_collectives=False)
        loads_by_both(path, rank)
        found = theirs.FileSystemReader(path).read_metadata(rank=rank)
        place = found.storage_data[MetadataIndex("own", torch.Size([0]))]
        kept[name] = (found.state_dict_metadata["own"].chunks, found.state_dict_metadata["own"].size, found.planner_data,
                      sorted(index.fqn for index in found.storage_data), found.version, place.relative_path.split(".")[0])
    assert kept["ours"] == kept["theirs"] == kept["ours in theirs"] == kept["theirs in ours"], kept


@ranks(4)
def indexes_of_single_ranks_replace_what_would_hide_them(folder):
    rank = dist.get_rank()
    state = {"own": whole((3,), start=rank), "n": rank, "size": torch.Size([rank, 2])}
    path = folder / "c"
    dcp.save({"n": -1, "own": torch.zeros(3)}, checkpoint_id=path)
    before = agreed(sorted(os.listdir(path)))
    for writer in (dcp.FileSystemWriter(path), dcp.FileSystemWriter(path, overwrite=False)):
        error = raised(lambda: theirs.save(dict(state), storage_writer=writer, use_collectives=False))  # noqa: B023
        assert "Checkpoint already exists" in str(error), error
    assert agreed(sorted(os.listdir(path))) == before
    dcp.save(dict(state), checkpoint_id=path, use_collectives=False)
    dist.barrier()
    names = agreed(sorted(os.listdir(path)))
    assert [name for name in names if name.endswith(".metadata")] == [f"__{r}.metadata" for r in range(4)], names
    assert sum(name.endswith(".distcp") for name in names) == 4 and set(before) & set(names) == {".lock"}, (before, names)
    loads_by_both(path, rank)
    pair = dist.new_group([0, 1])  # fewer ranks than before
    if rank < 2:
        dcp.save(dict(state), checkpoint_id=path, process_group=pair, use_collectives=False)
        dist.barrier(pair)
        loads_by_both(path, rank, pair)
    dist.barrier()
    names = agreed(sorted(os.listdir(path)))
    assert [name for name in names if name.endswith(".metadata")] == ["__0.metadata", "__1.metadata"], names
    assert sum(name.endswith(".distcp") for name in names) == 2, names


@ranks(2, 4)
def without_dist_each_rank_saves_by_itself(folder):
    rank = dist.get_rank()
    for format in FORMATS:
        path = folder / f"{format}{rank}"
        dcp.save({"w": whole(start=rank), "n": rank}, checkpoint_id=path, no_dist=True, format=format)
        target = {"w": torch.zeros(10, 7), "n": None}
        dcp.load(target, checkpoint_id=path, no_dist=True)
        assert torch.equal(target["w"], whole(start=rank)) and target["n"] == rank


# ---- groups ----

@ranks(4)
def groups_save_by_themselves_and_their_first_rank_coordinates(folder):
    groups = [dist.new_group([0, 2]), dist.new_group([3, 1])]
    mine = groups[dist.get_rank() % 2]
    members = dist.get_process_group_ranks(mine)
    mesh = DeviceMesh.from_group(mine, "cpu", mesh=members)
    for format in FORMATS:
        path = folder / f"{format}{dist.get_rank() % 2}"
        state = {"w": placed(whole(start=members[0]), mesh, Shard(0)), "n": members[0]}
        dcp.save(state, checkpoint_id=path, process_group=mine, format=format)
        target = {"w": empty_like(state["w"]), "n": None}
        dcp.load(target, checkpoint_id=path, process_group=mine)
        assert torch.equal(target["w"].full_tensor(), whole(start=members[0])) and target["n"] == members[0]
    step_by_step = folder / f"steps{dist.get_rank() % 2}"
    dcp.save(state, storage_writer=theirs.FileSystemWriter(step_by_step), process_group=mine)
    dcp.load(target, storage_reader=theirs.FileSystemReader(step_by_step), process_group=mine)
    assert torch.equal(target["w"].full_tensor(), whole(start=members[0]))


@ranks(4)
def a_failure_in_a_group_reaches_its_members(folder):
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = groups[dist.get_rank() // 2]
    broken = Broken({"write_data": [1]}) if dist.get_rank() >= 2 else theirs.FileSystemWriter(folder / "c")
    error = raised(lambda: dcp.save({"w": whole()}, storage_writer=broken, process_group=mine))
    if dist.get_rank() < 2:
        assert error is None, error
    else:
        assert list(error.failures) == [1] and isinstance(error, OSError), error


@ranks(4)
def stages_of_a_pipeline_hold_different_keys(folder):
    rank = dist.get_rank()
    for format in FORMATS:
        state = {"stages": {f"layer{rank}": {"w": whole(start=rank)}, "shared": whole((3,))}, f"only{rank}": rank}
        found = dcp.save(state, checkpoint_id=folder / format, format=format)
        assert sorted(found.state_dict_metadata) == sorted([*[f"stages.layer{r}.w" for r in range(4)], "stages.shared",
                                                            *[f"only{r}" for r in range(4)]])
        other = (rank + 1) % 4
        target = {"stages": {f"layer{other}": {"w": torch.zeros(10, 7)}, "shared": torch.zeros(3)}, f"only{other}": None}
        dcp.load(target, checkpoint_id=folder / format)
        assert torch.equal(target["stages"][f"layer{other}"]["w"], whole(start=other)) and target[f"only{other}"] == other


@ranks(4)
def tensors_of_a_submesh_are_skipped_elsewhere(folder):
    mesh = DeviceMesh("cpu", [1, 2])
    for format in FORMATS:
        state = {"sub": placed(whole(), mesh, Shard(0)), "all": placed(whole(start=3), line(), Shard(0))}
        dcp.save(state, checkpoint_id=folder / format, format=format)
        target = {name: empty_like(value) for name, value in state.items()}
        dcp.load(target, checkpoint_id=folder / format)
        assert torch.equal(target["all"].full_tensor(), whole(start=3))
        if dist.get_rank() in (1, 2):
            assert torch.equal(target["sub"].full_tensor(), whole())


# ---- sharded tensors of old ----

def specs():
    grid = [ShardMetadata([0, 0], [4, 10], "rank:0/cpu"), ShardMetadata([4, 0], [4, 10], "rank:1/cpu")]
    columns = [ShardMetadata([0, 0], [8, 3], "rank:1/cpu"), ShardMetadata([0, 3], [8, 7], "rank:0/cpu")]
    four = [ShardMetadata([0, 0], [4, 5], "rank:0/cpu"), ShardMetadata([0, 5], [4, 5], "rank:1/cpu"),
            ShardMetadata([4, 0], [4, 5], "rank:1/cpu"), ShardMetadata([4, 5], [4, 5], "rank:0/cpu")]
    chunks = ChunkShardingSpec(dim=0, placements=["rank:0/cpu", "rank:1/cpu"])
    return [chunks, *[EnumerableShardingSpec(shards) for shards in (grid, columns, four)]]


def sharded(spec, fill):
    made = sharded_tensor.zeros(spec, 8, 10)
    for shard in made.local_shards():
        rows, columns = shard.metadata.shard_offsets
        height, width = shard.metadata.shard_sizes
        if fill:
            shard.tensor.copy_(whole((8, 10))[rows:rows + height, columns:columns + width])
    return made


@ranks(2)
def sharded_tensors_go_from_every_spec_to_every_other(folder):
    for i, spec in enumerate(specs()):
        for format in FORMATS if len(sharded(spec, False).local_shards()) == 1 else FORMATS[:1]:
            dcp.save({"s": sharded(spec, True), "p": whole()}, checkpoint_id=folder / f"{format}{i}", format=format)
            for other in specs():
                target = {"s": sharded(other, False), "p": torch.zeros(10, 7)}
                dcp.load(target, checkpoint_id=folder / f"{format}{i}")
                for mine, wanted in zip(target["s"].local_shards(), sharded(other, True).local_shards(), strict=True):
                    assert torch.equal(mine.tensor, wanted.tensor)
                assert torch.equal(target["p"], whole())


# ---- faults at every hook ----

class Broken(theirs.StorageWriter, theirs.StorageReader):
    """Fails on some ranks in the hooks that it is told; else stores nothing and finds a tensor."""

    def __init__(self, failing):
        self.failing = failing

    def _step(self, name, result=None):
        if dist.get_rank() % 2 in self.failing.get(name, ()) or dist.get_rank() in self.failing.get(name, ()):
            raise OSError(f"no {name} today")
        return result

    @staticmethod
    def _done(value):
        future = torch.futures.Future()
        future.set_result(value)
        return future

    def reset(self, checkpoint_id=None):
        self._step("reset")

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self._step("set_up_storage_writer")

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self._step("set_up_storage_reader")

    def prepare_local_plan(self, plan):
        return self._step("prepare_local_plan", plan)

    def prepare_global_plan(self, plans):
        return self._step("prepare_global_plan", plans)

    def write_data(self, plan, planner):
        self._step("write_data")
        return self._done([])

    def read_data(self, plan, planner):
        self._step("read_data")
        return self._done(None)

    def finish(self, metadata, results):
        self._step("finish")

    def read_metadata(self):
        self._step("read_metadata")
        return dcp.default_planner._create_default_local_metadata({"w": whole((4,))})

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


SAVE_HOOKS = {"set_up_storage_writer": 1, "prepare_local_plan": 1, "write_data": 1, "prepare_global_plan": 0, "finish": 0}
LOAD_HOOKS = {"read_metadata": 1, "set_up_storage_reader": 1, "prepare_local_plan": 1, "read_data": 1, "prepare_global_plan": 0}


def check_faults(act, hooks):
    for hook, local in hooks.items():
        for failing in ([0], [1], [0, 1]) if local else ([0],):
            wanted = [r for r in range(dist.get_world_size()) if r in failing]
            error = raised(lambda hook=hook, failing=failing: act(Exact({hook: failing})))
            assert isinstance(error, theirs.CheckpointException) and isinstance(error, shardwright.ShardwrightError), error
            assert isinstance(error, Exception) and list(error.failures) == wanted, (hook, error)
            assert all(f"no {hook} today" in str(cause) for cause, _ in error.failures.values()), error
            assert f"(RANK {wanted[0]})" in str(error)
            if hook != "read_metadata":
                assert isinstance(error, OSError)


class Exact(Broken):
    def _step(self, name, result=None):
        if dist.get_rank() in self.failing.get(name, ()):
            raise OSError(f"no {name} today")
        return result


@ranks(2, 4)
def failing_ranks_of_every_hook_are_told_to_all(folder):
    check_faults(lambda broken: dcp.save({"w": whole((4,))}, storage_writer=broken), SAVE_HOOKS)
    check_faults(lambda broken: dcp.load({"w": whole((4,))}, storage_reader=broken), LOAD_HOOKS)
    assert raised(lambda: dcp.save({"w": whole((4,))}, storage_writer=Exact({}))) is None


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("I do not travel")


@ranks(2)
def an_exception_that_cannot_travel_is_told_by_its_words(folder):
    class Planner(dcp.DefaultSavePlanner):
        def create_local_plan(self):
            if dist.get_rank() == 1:
                raise Unpicklable("of rank 1")
            return super().create_local_plan()

    error = raised(lambda: dcp.save({"w": whole()}, checkpoint_id=folder / "c", planner=Planner()))
    assert list(error.failures) == [1] and "Unpicklable: of rank 1" in str(error), error

    class Sending(dcp.DefaultSavePlanner):
        def create_local_plan(self):
            plan = super().create_local_plan()
            return dataclasses.replace(plan, planner_data=Unpicklable()) if dist.get_rank() == 1 else plan

    error = raised(lambda: dcp.save({"w": whole()}, checkpoint_id=folder / "c", planner=Sending()))
    assert list(error.failures) == [1] and "I do not travel" in str(error), error


@ranks(2)
def a_key_that_one_rank_lacks_fails_the_load_on_all(folder):
    for format in FORMATS:
        dcp.save({"w": whole(), "n": 1}, checkpoint_id=folder / format, format=format)
        target = {"w": torch.zeros(10, 7)} | ({"gone": torch.zeros(1)} if dist.get_rank() == 1 else {})
        error = raised(lambda format=format, target=target: dcp.load(target, checkpoint_id=folder / format))
        assert isinstance(error, theirs.CheckpointException) and isinstance(error, RuntimeError | KeyError), error
        assert "Missing key in checkpoint state_dict: gone." in str(error) and list(error.failures) == [1], error
        assert torch.equal(target["w"], torch.zeros(10, 7))


# ---- values that differ between ranks ----

@ranks(2, 4)
def replicas_that_differ_are_written_with_one_warning(folder):
    rank = dist.get_rank()
    state = {"rng": torch.full((16,), rank, dtype=torch.uint8), "loader": {"position": rank}, "w": whole(), "same": 3}
    for format in FORMATS:
        for save in (dcp.save, lambda *a, **k: dcp.async_save(*a, **k).result()):
            with Warnings() as texts:
                save(state, checkpoint_id=folder / f"{format}", format=format)
            texts = [text for text in texts if "different values" in text]
            assert len(texts) == (rank == 0), texts
            if rank == 0:
                named = texts[0].removeprefix("ranks hold different values of ").partition(", and one")[0]
                assert sorted(named.split(", ")) == ["loader.position", "rng"] and '"rank_local"' in texts[0], texts
            target = {"rng": torch.zeros(16, dtype=torch.uint8), "loader": {"position": None}}
            dcp.load(target, checkpoint_id=folder / format)
            assert agreed(target["loader"]["position"]) == target["loader"]["position"]
    error = raised(lambda: dcp.save(state, checkpoint_id=folder / "e", verify_replicas="error"))
    assert isinstance(error, ValueError) and isinstance(error, theirs.CheckpointException), error
    assert not os.path.exists(folder / "e" / ".metadata")


@ranks(2, 4)
def rank_local_values_come_back_to_their_rank(folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    state = {"rng": torch.full((16,), rank, dtype=torch.uint8), "loader": {"position": rank}, "w": whole()}
    kinds = {"rng": "rank_local", "loader.*": "rank_local"}
    for format in FORMATS:
        for save in (dcp.save, lambda *a, **k: dcp.async_save(*a, **k).result()):
            with Warnings() as texts:
                save(state, checkpoint_id=folder / format, format=format, kind=kinds, verify_replicas="error")
            assert texts == [], texts
            target = {"rng": torch.zeros(16, dtype=torch.uint8), "loader": {"position": None}, "w": torch.zeros(10, 7)}
            dcp.load(target, checkpoint_id=folder / format)
            assert target["rng"].tolist() == [rank] * 16 and target["loader"] == {"position": rank}
    plain = {"w": torch.zeros(10, 7), f"rng.rank-{size - 1}": torch.zeros(16, dtype=torch.uint8)}
    theirs.load(plain, checkpoint_id=folder / "torch-dcp")
    assert plain[f"rng.rank-{size - 1}"].tolist() == [size - 1] * 16
