# SPDX-License-Identifier: Apache-2.0
"""Cases of the torch planners inside torch's own save and load, with torch's own files, over several ranks."""
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.distributed.checkpoint.default_planner as original
from cases import empty_like, placed, raised, ranks, whole
from torch.distributed._shard.sharded_tensor import Shard as LocalShard
from torch.distributed._shard.sharded_tensor import ShardedTensor, ShardMetadata
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

import shardwright.torch.dcp.planner as ours

PLANNERS = (original.DefaultSavePlanner, ours.DefaultSavePlanner)


# ---- vocabulary ----

def planned(planner_class, state, touch=False, **options):
    """(local plans of all ranks, final plans, metadata, error) as rank 0 sees them; the same on all ranks."""
    planner = planner_class(**options)
    planner.set_up_planner(state, None, dist.get_rank() == 0)
    mine = planner.create_local_plan()
    if touch:
        len(mine.items[:])
    local = [None] * dist.get_world_size()
    dist.all_gather_object(local, mine)
    try:
        return (local, *planner.create_global_plan(local), None)
    except Exception as e:
        return local, None, None, e


def check_plans(state, **options):
    """Both planners make the same of a state, of plan buffers as of items."""
    theirs = planned(PLANNERS[0], state, **options)
    for touch in (False, dist.get_rank() % 2 == 0):
        mine = planned(PLANNERS[1], state, touch, **options)
        for what, one, other in zip(("local", "final", "metadata"), theirs, mine, strict=False):
            assert one == other, f"{what} plans differ: {one} {other}"
        hints = [[[i.index.index for i in p.items] for p in found[1]] for found in (theirs, mine)]
        assert hints[0] == hints[1]


def save(state, path, planner=None, **options):
    return dcp.save(state, checkpoint_id=path, planner=planner or ours.DefaultSavePlanner(**options))


def load(state, path, planner=None):
    dcp.load(state, checkpoint_id=path, planner=planner or ours.DefaultLoadPlanner())


def meshes():
    return (init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner")),
            init_device_mesh("cpu", (4, 1), mesh_dim_names=("outer", "inner")))


def layouts():
    line, grid, column = meshes()
    return [(line, (Shard(0),)), (line, (Shard(1),)), (line, (Replicate(),)), (grid, (Replicate(), Shard(0))),
            (grid, (Shard(0), Replicate())), (grid, (Shard(0), Shard(1))), (grid, (Shard(1), Shard(1))),
            (grid, (Shard(0), Shard(0))), (column, (Shard(1), Shard(0)))]


# ---- placements ----

@ranks(4)
def planners_agree_on_every_placement(folder):
    for shape in ((10, 6), (3, 2), (1, 5)):
        state = {f"t{i}": placed(whole(shape), mesh, *p) for i, (mesh, p) in enumerate(layouts())}
        check_plans(state | {"plain": torch.ones(3), "own": {"step": 5}})
        check_plans(state, dedup_save_to_lowest_rank=True)


@ranks(4)
def every_placement_is_resharded_into_every_other(folder):
    found = layouts()
    state = {f"t{i}": placed(whole((9, 5), start=i), mesh, *p) for i, (mesh, p) in enumerate(found)}
    save(state, folder / "p")
    for turn in (1, 3, 5, 8):
        wanted = {f"t{i}": empty_like(placed(whole((9, 5)), *self_and_placements(found[(i + turn) % len(found)])))
                  for i in range(len(found))}
        load(wanted, folder / "p", original.DefaultLoadPlanner() if turn == 1 else None)
        for i in range(len(found)):
            assert torch.equal(wanted[f"t{i}"].full_tensor(), whole((9, 5), start=i)), (turn, i)


def self_and_placements(layout):
    mesh, placements = layout
    return (mesh, *placements)


@ranks(4)
def empty_shards_are_planned_as_torch_plans_them(folder):
    mesh = init_device_mesh("cpu", (4,))
    state = {f"n{n}": placed(whole((n, 2)), mesh, Shard(0)) for n in (10, 6, 3, 1)}
    check_plans(state)
    metadata = save(state, folder / "p")
    found = {name: [(c.offsets[0], c.sizes[0]) for c in metadata.state_dict_metadata[name].chunks] for name in state}
    assert found["n10"] == [(0, 3), (3, 3), (6, 3), (9, 1)] and found["n6"] == [(0, 2), (2, 2), (4, 2), (6, 0)]
    wanted = {name: empty_like(tensor) for name, tensor in state.items()}
    load(wanted, folder / "p")
    for name, tensor in state.items():
        assert torch.equal(wanted[name].full_tensor(), tensor.full_tensor())


@ranks(4)
def fsdp_with_tensor_parallelism_on_one_dimension_is_planned(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    placements = (_StridedShard(0, split_factor=2), Shard(0))
    expected = {8: ([2, 2, 2, 2], [0, 4, 2, 6]), 10: ([3, 3, 2, 2], [0, 5, 3, 8])}
    state = {}
    for n, (sizes, offsets) in expected.items():
        local = torch.arange(float(sizes[dist.get_rank()])) + offsets[dist.get_rank()]
        state[f"n{n}"] = DTensor.from_local(local, mesh, placements, run_check=False, shape=torch.Size([n]), stride=(1,))
    check_plans(state)
    local, _, _, _ = planned(PLANNERS[1], state)
    for place, (n, (sizes, offsets)) in enumerate(expected.items()):
        chunks = [plan.items[place].tensor_data.chunk for plan in local]
        assert [c.sizes[0] for c in chunks] == sizes and [c.offsets[0] for c in chunks] == offsets, n
    save(state, folder / "p")
    wanted = {f"n{n}": torch.zeros(n) for n in expected}
    load(wanted, folder / "p")
    assert all(torch.equal(wanted[f"n{n}"], torch.arange(float(n))) for n in expected)


@ranks(4)
def ranks_outside_a_mesh_write_and_read_nothing_of_it(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    from torch.distributed.device_mesh import DeviceMesh
    some = DeviceMesh("cpu", [1, 3])
    state = {"all": placed(whole(), mesh, Shard(0), Shard(1)), "some": placed(whole(), some, Shard(0))}
    check_plans(state)
    save(state, folder / "p")
    wanted = {name: empty_like(tensor) for name, tensor in state.items()}
    load(wanted, folder / "p")
    assert torch.equal(wanted["all"].to_local(), state["all"].to_local())
    assert torch.equal(wanted["some"].to_local(), state["some"].to_local())


# ---- other kinds of tensors ----

def sharded(rows, per_rank=1, nested=None):
    """A ShardedTensor of `rows` x 2 in even shards, `per_rank` of them on each rank."""
    rank, size = dist.get_rank(), rows // (dist.get_world_size() * per_rank)
    shards = []
    for number in range(per_rank):
        offset = (rank * per_rank + number) * size
        data = whole((rows, 2))[offset:offset + size].clone() if nested is None else nested
        shards.append(LocalShard(data, ShardMetadata([offset, 0], [size, 2], f"rank:{rank}/cpu")))
    return ShardedTensor._init_from_local_shards(shards, rows, 2)


@ranks(2, 4)
def sharded_tensors_of_old_are_planned(folder):
    state = {"one": sharded(8), "two": sharded(16, per_rank=2), "plain": torch.ones(2)}
    check_plans(state)
    check_plans(state, flatten_sharded_tensors=False)
    mine, theirs = (m._create_default_local_metadata(state) for m in (ours, original))
    assert mine == theirs and len(mine.state_dict_metadata["two"].chunks) == 2 * dist.get_world_size()
    save(state, folder / "p")
    wanted = {"one": torch.zeros(8, 2), "two": sharded(16, per_rank=2)}
    for shard in wanted["two"].local_shards():
        shard.tensor.fill_(77)
    load(wanted, folder / "p")
    assert torch.equal(wanted["one"], whole((8, 2)))
    for shard, expected in zip(wanted["two"].local_shards(), state["two"].local_shards(), strict=True):
        assert torch.equal(shard.tensor, expected.tensor)
    for planner in (original.DefaultLoadPlanner(), ours.DefaultLoadPlanner()):
        on_meta = sharded(8)
        on_meta.local_shards()[0].tensor = on_meta.local_shards()[0].tensor.to("meta")
        error = raised(lambda planner=planner, on_meta=on_meta: planner.set_up_planner({"one": on_meta}, mine, True))
        assert isinstance(error, RuntimeError) and "Found unsupported type" in str(error), repr(error)


@ranks(2)
def attributes_place_plain_tensors(folder):
    rank = dist.get_rank()
    local = whole((4, 3)) + 100 * rank
    local.global_shape, local.global_offsets = (8, 3), ((2 * rank, 0), (4 + 2 * rank, 0))
    local.local_offsets, local.local_sizes = ((0, 0), (2, 0)), ((2, 3), (2, 3))
    check_plans({"w": local})
    save({"w": local}, folder / "p")
    wanted = {"w": torch.zeros(8, 3)}
    load(wanted, folder / "p")
    parts = [whole((4, 3)) + 100 * r for r in range(2)]
    assert torch.equal(wanted["w"], torch.cat([parts[0][:2], parts[1][:2], parts[0][2:], parts[1][2:]]))


@ranks(4)
def meta_dtensors_get_memory_before_they_are_filled(folder):
    mesh = init_device_mesh("cpu", (4,))
    save({"w": placed(whole(), mesh, Shard(0))}, folder / "p")
    for planner in (original.DefaultLoadPlanner(), ours.DefaultLoadPlanner()):
        target = {"w": DTensor.from_local(placed(whole(), mesh, Shard(0)).to_local().to("meta"), mesh, [Shard(0)],
                                          run_check=False, shape=torch.Size([10, 7]), stride=(7, 1))}
        load(target, folder / "p", planner)
        assert torch.equal(target["w"].full_tensor(), whole())


# ---- what travels ----

class Watching(ours.DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        self.arrived = [getattr(plan.items, "plan", None) is not None for plan in all_plans]
        self.usable = [plan.usable for plan in all_plans]
        plans, metadata = super().create_global_plan(all_plans)
        self.left = [getattr(plan.items, "plan", None) is not None for plan in plans]
        return plans, metadata

    def finish_plan(self, new_plan):
        self.mine = getattr(new_plan.items, "plan", None) is not None
        return super().finish_plan(new_plan)


@ranks(2, 4)
def plan_buffers_pass_through_torchs_save_untouched(folder):
    planner = Watching()
    save({"w": torch.ones(3), "o": 1}, folder / "p", planner)
    if dist.get_rank() == 0:
        assert planner.arrived == planner.left == [True] * dist.get_world_size()
    assert planner.mine


@ranks(2, 4)
def unchanged_states_send_digests(folder):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"w": placed(whole(), mesh, Shard(0)), "b": torch.ones(3), "step": 1}
    for number in range(3):
        planner = Watching(enable_plan_caching=True)
        state["step"] = number
        metadata = save(state, folder / f"p{number}", planner)
        if dist.get_rank() == 0:
            assert planner.usable == [number == 0] * dist.get_world_size(), (number, planner.usable)
        wanted = {"w": empty_like(state["w"]), "b": torch.zeros(3), "step": -1}
        load(wanted, folder / f"p{number}", original.DefaultLoadPlanner())
        assert torch.equal(wanted["w"].full_tensor(), whole()) and wanted["step"] == number
        assert len(metadata.storage_data) == dist.get_world_size() + 2


@ranks(2)
def ranks_that_save_on_their_own_need_no_plan_of_others(folder):
    rank = dist.get_rank()
    state = {"w": torch.full((3,), float(rank)), "step": rank}
    writer, reader = dcp.FileSystemWriter(folder / "p"), dcp.FileSystemReader(folder / "p")
    dcp.save(state, storage_writer=writer, planner=ours.DefaultSavePlanner(), use_collectives=False)
    wanted = {"w": torch.zeros(3), "step": -1}
    dcp.load(wanted, storage_reader=reader, planner=ours.DefaultLoadPlanner())
    assert wanted["w"].tolist() == [float(rank)] * 3 and wanted["step"] == rank


@ranks(2)
def values_that_differ_between_ranks_are_named(folder):
    planner = ours.DefaultSavePlanner()
    save({"step": dist.get_rank(), "same": "x"}, folder / "p", planner)
    assert planner.replica_mismatches == (["step"] if dist.get_rank() == 0 else [])
    error = raised(lambda: save({"step": dist.get_rank()}, folder / "q", verify_replicas="error"))
    assert isinstance(error, CheckpointException) and list(error.failures) == [0], repr(error)
    assert not os.path.exists(folder / "q" / ".metadata")


# ---- what goes wrong ----

@ranks(2)
def a_hook_that_fails_on_one_rank_fails_the_save_on_all(folder):
    for step, where in (("set_up_planner", 1), ("create_local_plan", 1), ("create_global_plan", 0), ("finish_plan", 1),
                        ("resolve_data", 1), ("lookup_object", 0)):
        found = []
        for planner_class in PLANNERS:
            def fail(self, *arguments, step=step, where=where, planner_class=planner_class, **keywords):
                if dist.get_rank() == where:
                    raise ValueError(f"no {step} today")
                return getattr(planner_class, step)(self, *arguments, **keywords)

            planner = type("Failing", (planner_class,), {step: fail})()
            error = raised(lambda planner=planner, step=step: save({f"w{dist.get_rank()}": torch.ones(2)}, folder / step, planner))
            assert isinstance(error, CheckpointException) and f"no {step} today" in str(error), (step, repr(error))
            found.append(sorted(error.failures))
        assert found[0] == found[1] == [where], (step, found)


@ranks(2)
def a_hook_that_fails_on_one_rank_fails_the_load_on_all(folder):
    save({"w": torch.ones(2), "o": 1}, folder / "p")
    for step in ("set_up_planner", "create_local_plan", "create_global_plan", "finish_plan", "load_bytes", "resolve_tensor",
                 "commit_tensor"):
        where = 0 if step == "create_global_plan" else 1

        def fail(self, *arguments, step=step, where=where, **keywords):
            if dist.get_rank() == where:
                raise ValueError(f"no {step} today")
            return getattr(ours.DefaultLoadPlanner, step)(self, *arguments, **keywords)

        planner = type("Failing", (ours.DefaultLoadPlanner,), {step: fail})()
        error = raised(lambda planner=planner: load({"w": torch.zeros(2), "o": 0}, folder / "p", planner))
        assert isinstance(error, CheckpointException) and list(error.failures) == [where], (step, repr(error))
        assert f"no {step} today" in str(error)


@ranks(2)
def plans_that_cannot_be_stored_fail_with_torchs_words(folder):
    rank, found = dist.get_rank(), []
    local = torch.ones(2)
    local.global_shape, local.global_offsets = (4,), ((rank,),)
    local.local_offsets, local.local_sizes = ((0,),), ((2,),)
    for planner_class in PLANNERS:
        error = raised(lambda planner_class=planner_class: save({"w": local}, folder / "p", planner_class()))
        assert isinstance(error, CheckpointException) and list(error.failures) == [0]
        found.append(str(error.failures[0][0]))
    assert found[0] == found[1] and "overlapping chunks" in found[0]
