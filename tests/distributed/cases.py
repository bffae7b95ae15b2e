# SPDX-License-Identifier: Apache-2.0
"""Cases that every rank of a launch runs: saving and loading of torch state dicts through shardwright.torch.

A case takes the folder of the launch, asserts, and is named after what holds. The decorator says for which world sizes.
"""
import collections.abc
import hashlib
import os
import re
import unittest.mock

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

_cases = []


def ranks(*sizes):
    def keep(function):
        _cases.append((sizes, function))
        return function
    return keep


def of_world_size(size, only=()):
    return [f for sizes, f in _cases if size in sizes and (not only or f.__name__ in only)]


# ---- vocabulary ----

def whole(shape=(10, 7), dtype=torch.float32, start=0):
    count = 1
    for extent in shape:
        count *= extent
    return (torch.arange(count) + start).to(dtype).reshape(shape)


def placed(tensor, mesh, *placements):
    return distribute_tensor(tensor.clone(), mesh, placements)


def empty_like(tensor):
    return DTensor.from_local(torch.full_like(tensor.to_local(), 77), tensor.device_mesh, tensor.placements,
                              run_check=False, shape=tensor.shape, stride=tensor.stride())


def agreed(value):
    """The value of rank 0, which must be that of all ranks."""
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def raised(function):
    try:
        function()
    except BaseException as e:
        return e
    return None


def store():
    return dist.distributed_c10d._get_default_store()


def transport_name():
    """Of the collective that this launch chose."""
    in_use = shardwright.torch.collective_in_use()
    wanted = os.environ.get("SHW_TORCH_COLLECTIVE", "auto")
    assert in_use.in_memory == (wanted == "auto"), in_use
    if in_use.in_memory:
        return "node"
    assert in_use.kind == wanted, in_use
    return {"c10d": "c10d", "python": "torch.distributed"}[in_use.kind]


class Raising(collections.abc.Mapping):
    """A mapping whose keys cannot be read, as where a lazy tensor finds no memory."""

    def __init__(self, error):
        self.error = error

    def __iter__(self):
        raise self.error

    __getitem__ = __len__ = None


# ---- saving and loading ----

@ranks(2, 4)
def plain_tensors_are_written_once(folder):
    state = {"model": {"w": whole(), "b": whole((3,), torch.bfloat16)}, "step": 5}
    report = shardwright.torch.save(state, folder / "p")
    written = [None] * dist.get_world_size()
    dist.all_gather_object(written, report.bytes_written)
    with shardwright.open(folder / "p") as c:
        assert sum(chunk.nbytes for t in c.tensors() for chunk in t.chunks()) == 280 + 6
        assert c.digest("sha256")["model.w"]["digest"] == digest(whole())
    target = {"model": {"w": torch.zeros(10, 7), "b": torch.zeros(3, dtype=torch.bfloat16)}, "step": None}
    found = shardwright.torch.load(folder / "p", into=target)
    assert torch.equal(target["model"]["w"], whole()) and target["step"] == 5
    assert found.missing == [] and torch.equal(target["model"]["b"], whole((3,), torch.bfloat16))


@ranks(2, 4)
def uneven_shards_are_resharded_to_every_placement(folder):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"rows": placed(whole(), mesh, Shard(0)), "columns": placed(whole((3, 5)), mesh, Shard(1)),
             "copied": placed(whole((4,)), mesh, Replicate()), "few": placed(whole((1, 3)), mesh, Shard(0))}
    shardwright.torch.save(state, folder / "p")
    for placement in (Shard(0), Shard(1), Replicate()):
        wanted = {"rows": empty_like(placed(whole(), mesh, placement)),
                  "columns": empty_like(placed(whole((3, 5)), mesh, placement)),
                  "copied": torch.zeros(4), "few": empty_like(placed(whole((1, 3)), mesh, placement))}
        shardwright.torch.load(folder / "p", into=wanted)
        assert torch.equal(wanted["rows"].full_tensor(), whole()), placement
        assert torch.equal(wanted["columns"].full_tensor(), whole((3, 5)))
        assert torch.equal(wanted["few"].full_tensor(), whole((1, 3)))
        assert torch.equal(wanted["copied"], whole((4,)))


@ranks(2, 4)
def each_rank_gets_its_own_rank_local_entries(folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    state = {"w": whole(), "own": torch.full((2 + rank,), rank), "rng": {"seed": rank}}
    shardwright.torch.save(state, folder / "p", kind={"own": "rank_local", "rng": "rank_local"})
    found = shardwright.torch.load(folder / "p")
    assert torch.equal(found["w"], whole())
    assert found["own"].tolist() == [rank] * (2 + rank) and found["rng"] == {"seed": rank}, (rank, found)
    target = {"own": torch.zeros(2 + rank, dtype=torch.int64), "rng": None}
    shardwright.torch.load(folder / "p", into=target)
    assert target["own"].tolist() == [rank] * (2 + rank) and target["rng"] == {"seed": rank}
    with shardwright.open(folder / "p") as c:
        assert sorted(c.keys()) == ["own", "w"] and c.ranks("own") == c.ranks("rng") == list(range(size))


@ranks(2)
def a_load_of_everything_that_fails_on_one_rank_fails_on_all(folder):
    shardwright.torch.save({"w": whole()}, folder / "p")
    error = raised(lambda: shardwright.torch.load(folder / ("p" if dist.get_rank() else "nothing")))
    assert isinstance(error, shardwright.NotFoundError) and "nothing" in str(error), error


@ranks(4)
def two_dimensional_meshes_reshard_into_each_other(folder):
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    line = init_device_mesh("cpu", (4,))
    placements = ([Replicate(), Shard(0)], [Shard(0), Shard(1)], [Shard(1), Shard(0)], [Shard(0), Shard(0)],
                  [Replicate(), Replicate()])
    state = {f"t{i}": placed(whole((9, 5), start=i), grid, *p) for i, p in enumerate(placements)}
    shardwright.torch.save(state, folder / "p")
    with shardwright.open(folder / "p") as c:
        found = c.digest("sha256")
        for i in range(len(placements)):
            assert found[f"t{i}"]["digest"] == digest(whole((9, 5), start=i))
            assert sum(chunk.nbytes for chunk in c[f"t{i}"].chunks()) == 180, "replicas are written once"
    wanted = {f"t{i}": empty_like(placed(whole((9, 5)), line, Shard(i % 2))) for i in range(len(placements))}
    shardwright.torch.load(folder / "p", into=wanted)
    for i in range(len(placements)):
        assert torch.equal(wanted[f"t{i}"].full_tensor(), whole((9, 5), start=i))


@ranks(4)
def dtensors_are_planned_by_their_layouts(folder):
    rank = dist.get_rank()
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    state = {"both": placed(whole(), grid, Shard(0), Shard(1)), "hybrid": placed(whole((9,)), grid, Replicate(), Shard(0)),
             "fsdp_and_tp": placed(whole((8, 3)), grid, Shard(0), Shard(0)), "plain": whole((3,)), "step": 4}
    leaves = shardwright.torch.LeafConverter(None, False)
    made = shardwright.State(state, rank=rank, convert=leaves.convert)
    with shardwright.SavePlanner(made, rank=rank, world_size=4) as planner:
        plan = shardwright.Plan.from_bytes(planner.local_plan())
    assert plan.kind == "local_save"
    found = plan.to_dict()["description_digest"]
    assert found == agreed(found), "ranks of one mesh describe alike"
    assert {tensor["form"] for tensor in plan.to_dict()["tensors"]} == {"whole", "layout"}
    shardwright.torch.save(state, folder / "p")
    with shardwright.open(folder / "p") as c:
        assert c.digest("sha256")["both"]["digest"] == digest(whole())
        assert c.digest("sha256")["fsdp_and_tp"]["digest"] == digest(whole((8, 3)))


@ranks(4)
def a_group_of_some_ranks_saves_on_its_own(folder):
    rank = dist.get_rank()
    group = dist.new_group([2, 3])
    if rank in (2, 3):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))["inner"]
        state = {"w": placed(whole(), mesh, Shard(0))}
        shardwright.torch.save(state, folder / "p", process_group=group)
        wanted = {"w": empty_like(state["w"])}
        shardwright.torch.load(folder / "p", into=wanted, process_group=group)
        assert torch.equal(wanted["w"].to_local(), state["w"].to_local())
    else:
        init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    dist.barrier()
    with shardwright.open(folder / "p") as c:
        assert c.world_size == 2 and c["w"].shape == (10, 7)
    dist.barrier()


@ranks(2)
def fsdp_model_and_optimizer_come_back_bitwise(folder):
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    def trained(steps):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.LayerNorm(5), torch.nn.Linear(5, 3))
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for step in range(steps):
            torch.manual_seed(step)
            model(torch.randn(4, 7)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return model, optimizer

    model, optimizer = trained(3)
    weights, moments = get_state_dict(model, optimizer)
    shardwright.torch.save({"model": weights, "optimizer": moments, "step": 3}, folder / "p")
    fresh_model, fresh_optimizer = trained(1)
    weights, moments = get_state_dict(fresh_model, fresh_optimizer)
    state = {"model": weights, "optimizer": moments, "step": 0}
    report = shardwright.torch.load(folder / "p", into=state)
    assert report.missing == [] and report.unexpected == [] and state["step"] == 3
    set_state_dict(fresh_model, fresh_optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for a, b in zip(model.parameters(), fresh_model.parameters(), strict=True):
        assert torch.equal(a.to_local(), b.to_local())
        for key, value in optimizer.state[a].items():
            found = fresh_optimizer.state[b][key]
            value, found = (v.to_local() if isinstance(v, DTensor) else v for v in (value, found))
            assert torch.equal(value, found), key


@ranks(2)
def a_background_save_keeps_what_was_there_when_it_began(folder):
    mesh = init_device_mesh("cpu", (2,))
    state = {"w": placed(whole((64, 64)), mesh, Shard(0)), "note": {"loss": 0.5}}
    for round_number in range(2):
        job = shardwright.torch.save_async(state, folder / f"p{round_number}")
        assert job.wait_staged(60)
        state["w"].to_local().add_(1)
        dist.all_reduce(torch.ones(1))  # training goes on over its own group
        assert job.result(60).operation == "save"
    dist.barrier()
    for round_number in range(2):
        with shardwright.open(folder / f"p{round_number}") as c:
            assert c["w"].digest("sha256") == digest(whole((64, 64), start=round_number))
            assert c.object("note") == {"loss": 0.5}
    dist.barrier()


@ranks(2)
def an_optimizer_waits_for_a_save_that_holds_its_tensors(folder):
    weight = torch.nn.Parameter(torch.zeros(1 << 20))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    weight.grad = torch.ones(1 << 20)
    shardwright.torch.prepare({"w": weight})
    job = shardwright.torch.save_async({"w": weight}, folder / "p", hold=True, priority="background")
    shardwright.torch.fence(job, optimizer)
    optimizer.step()
    assert job.poll() in ("staged", "succeeded")
    assert job.result(60).operation == "save"
    assert not shardwright.load(folder / "p")["w"].numpy().any() and weight.eq(-1).all()
    dist.barrier()
    refused = shardwright.torch.save_async({"w": weight}, folder / "p", hold=True, overwrite="refuse")
    shardwright.torch.fence(refused, optimizer)
    shardwright.torch.fence(job, optimizer)
    optimizer.register_step_pre_hook(lambda *_: None)
    optimizer.step()  # the job's failure is its own
    assert isinstance(raised(refused.result), shardwright.AlreadyExistsError) and weight.eq(-2).all()
    dist.barrier()


@ranks(2)
def what_a_save_in_the_background_needs_is_made_before(folder):
    rank, over = dist.get_rank(), shardwright.torch.collective_over
    refused = raised(lambda: shardwright.torch.prepare({"w": torch.ones(4), "odd": {1, 2} if rank == 1 else 1}))
    assert "odd" in str(refused) and ("rank 1" in str(refused)) == (rank == 0), refused
    group, opened = dist.new_group([0, 1]), []
    with unittest.mock.patch("shardwright.torch.collective_over",
                             lambda beside, use, *rest, **more: opened.append((beside, use)) or over(beside, use, *rest, **more)):
        shardwright.torch.prepare({"w": torch.ones(4)}, process_group=group)
    assert opened == [(group, "calls"), (group, "background")]
    shardwright.torch.save_async({"w": torch.ones(4)}, folder / "p", process_group=group).result(60)
    dist.barrier()


@ranks(2)
def a_background_load_fills_the_target(folder):
    mesh = init_device_mesh("cpu", (2,))
    shardwright.torch.save({"w": placed(whole(), mesh, Shard(1)), "step": 9}, folder / "p")
    wanted = {"w": empty_like(placed(whole(), mesh, Shard(0))), "step": 0}
    job = shardwright.torch.load_async(folder / "p", into=wanted)
    job.result(60)
    assert torch.equal(wanted["w"].full_tensor(), whole()) and wanted["step"] == 9


# ---- what goes wrong ----

class Trainer:
    """An object with a state: a DTensor and a number."""

    def __init__(self, mesh, start):
        self.weight, self.step = placed(whole(start=start), mesh, Shard(0)), start

    def state_dict(self):
        return {"weight": self.weight.clone(), "step": self.step}

    def load_state_dict(self, state_dict):
        self.weight, self.step = state_dict["weight"], state_dict["step"]


@ranks(2)
def modules_and_objects_with_a_state_are_saved_and_filled(folder):
    mesh = init_device_mesh("cpu", (2,))

    def world(start):
        torch.manual_seed(start)
        return {"model": torch.nn.Linear(3, 2), "trainer": Trainer(mesh, start)}

    saved, target = world(1), world(2)
    shardwright.torch.save(saved, folder / "objects")
    shardwright.torch.load(folder / "objects", into=target)
    assert torch.equal(target["model"].weight, saved["model"].weight) and target["trainer"].step == 1
    assert torch.equal(target["trainer"].weight.full_tensor(), whole(start=1))
    shardwright.torch.save_async(target["model"], folder / "module").result(60)
    again = world(3)["model"]
    assert shardwright.torch.load_async(folder / "module", again).result(60).missing == []
    assert torch.equal(again.weight, saved["model"].weight) and torch.equal(again.bias, saved["model"].bias)


@ranks(2)
def replicas_that_differ_are_refused_on_all_ranks(folder):
    state = {"w": torch.full((4,), float(dist.get_rank()))}
    error = raised(lambda: shardwright.torch.save(state, folder / "p"))
    assert isinstance(error, shardwright.InvalidArgumentError) and "w" in str(error), repr(error)
    assert not os.path.exists(folder / "p" / "manifest.shw")
    shardwright.torch.save(state, folder / "q", kind=[("*", "rank_local")])
    with shardwright.open(folder / "q", rank=1) as c:
        assert c["w"][:].tolist() == [1.0] * 4
    dist.barrier()


@ranks(2)
def a_state_that_is_wrong_on_one_rank_fails_on_all(folder):
    state = {"w": torch.ones(4)} if dist.get_rank() == 0 else {"w": torch.ones(4), "bad": {1, 2}}
    error = raised(lambda: shardwright.torch.save(state, folder / "p", deadline=60))
    assert isinstance(error, shardwright.InvalidArgumentError) and "bad" in str(error), repr(error)
    good = {"w": torch.ones(4)}
    shardwright.torch.save(good, folder / "p")
    with shardwright.open(folder / "p") as c:
        assert list(c.keys()) == ["w"]
    dist.barrier()


@ranks(2)
def partial_placements_are_refused_clearly(folder):
    from torch.distributed.tensor.placement_types import Partial
    mesh = init_device_mesh("cpu", (2,))
    partial = DTensor.from_local(torch.ones(4), mesh, [Partial()], run_check=False)
    error = raised(lambda: shardwright.torch.save({"w": partial}, folder / "p", deadline=60))
    assert isinstance(error, shardwright.FailedPreconditionError) and "Partial" in str(error), repr(error)
    dist.barrier()


@ranks(2)
def strided_shards_of_several_boxes_keep_every_row_and_column(folder):
    from torch.distributed.tensor.placement_types import _StridedShard
    mesh = init_device_mesh("cpu", (2,))
    full = whole((7, 6))

    def strided(dim, fill=None):
        placement = _StridedShard(dim, split_factor=3)
        local = placement._split_tensor(full, 2, with_padding=False)[0][dist.get_rank()]
        local = local if fill is None else torch.full_like(local, fill)
        return DTensor.from_local(local, mesh, [placement], run_check=False, shape=full.shape, stride=full.stride())

    shardwright.torch.save({"rows": strided(0), "columns": strided(1)}, folder / "p")
    with shardwright.open(folder / "p") as c:
        assert (c["rows"][:] == full.numpy()).all() and (c["columns"][:] == full.numpy()).all()
    wanted = {"rows": strided(1, -1.0), "columns": strided(0, -1.0)}
    shardwright.torch.load(folder / "p", into=wanted)
    assert torch.equal(wanted["rows"].to_local(), strided(1).to_local())
    assert torch.equal(wanted["columns"].to_local(), strided(0).to_local())


@ranks(2)
def a_shape_that_differs_fails_on_all_ranks(folder):
    mesh = init_device_mesh("cpu", (2,))
    shardwright.torch.save({"w": placed(whole(), mesh, Shard(0))}, folder / "p")
    wanted = {"w": empty_like(placed(whole((7, 10)), mesh, Shard(0)))}
    error = raised(lambda: shardwright.torch.load(folder / "p", into=wanted))
    assert isinstance(error, shardwright.InvalidArgumentError) and "w" in str(error), repr(error)


@ranks(2)
def a_plain_save_points_to_the_adapter_for_sharded_tensors(folder):
    mesh = init_device_mesh("cpu", (2,))
    error = raised(lambda: shardwright.save({"w": placed(whole(), mesh, Shard(0))}, folder / "p"))
    assert isinstance(error, shardwright.InvalidArgumentError) and "shardwright.torch" in str(error)


@ranks(2)
def data_loader_workers_that_fork_later_keep_working(folder):
    shardwright.torch.save({"w": torch.ones(3)}, folder / "p")
    loader = torch.utils.data.DataLoader(list(range(8)), batch_size=2, num_workers=2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    shardwright.torch.save({"w": torch.zeros(3)}, folder / "p")


@ranks(2)
def the_collective_carries_bytes_of_any_size(folder):
    end = shardwright.torch.collective()
    assert end is not None
    assert (end.rank, end.size) == (dist.get_rank(), 2) and end.name == transport_name()
    end.barrier()
    assert end.broadcast(b"abc" if end.rank == 0 else b"xyz", 0) == b"abc"
    assert end.broadcast(b"", 0) == b""
    assert end.all_gather(bytes([end.rank] * 3)) == bytes([0, 0, 0, 1, 1, 1])
    assert end.all_gather(b"x" * (1 + 4 * end.rank), [1, 5]) == b"x" * 6
    assert end.all_gather(b"" if end.rank else b"ab", [2, 0]) == b"ab"
    assert end.all_reduce_i64([end.rank, 5], "sum") == (1, 10)
    assert end.all_reduce_i64([end.rank - 7], "min") == (-7,)
    assert end.all_reduce_i64([end.rank], "max") == (1,)
    assert end.all_reduce_i64([-2**63 if end.rank else 2**63 - 1, -5], "sum") == (-1, -10)
    error = raised(lambda: end.all_reduce_i64([2**62], "sum"))
    assert isinstance(error, shardwright.OutOfRangeError), repr(error)


@ranks(2, 4)
def parts_go_to_the_root_and_from_it(folder):
    end = shardwright.torch.collective()
    assert end is not None
    parts = [bytes([rank]) * (0 if rank == 1 else 1000 * rank + 3) for rank in range(end.size)]
    for root in range(end.size):
        is_root = end.rank == root
        for _ in range(3):
            gathered = end.gather(parts[end.rank], [len(p) for p in parts] if is_root else None, root)
            assert gathered == (b"".join(parts) if is_root else b"")
            assert end.scatter(parts if is_root else [], len(parts[end.rank]), root) == parts[end.rank]
    wrong = [len(p) for p in parts[::-1]] if end.rank == 0 else None  # as many bytes in all
    error = raised(lambda: end.gather(parts[end.rank], wrong))
    assert isinstance(error, shardwright.InvalidArgumentError), repr(error)
    if end.size > 2:  # weights linear in the rank would add that up to nothing
        apart = [len(p) + by for p, by in zip(parts, (1, 2, -1, 0), strict=True)] if end.rank == 0 else None
        error = raised(lambda: end.gather(parts[end.rank], apart))
        assert isinstance(error, shardwright.InvalidArgumentError), repr(error)
    error = raised(lambda: end.scatter(parts if end.rank == 0 else [], len(parts[end.rank]) + (end.rank == 1)))
    assert isinstance(error, shardwright.InvalidArgumentError), repr(error)
    assert end.gather(b"", [0] * end.size if end.rank == 0 else None) == b""


@ranks(2, 4)
def each_rank_gets_what_every_other_has_for_it(folder):
    end = shardwright.torch.collective()
    everyone = range(end.size)

    def part(sender, to):  # nothing for some, a MiB between two
        return bytes([65 + 5 * sender + to]) * (1 << 20 if (sender, to) == (0, 1) else (sender + 3 * to) % 4 * 7)
    for _ in range(2):
        found = end.all_to_all([part(end.rank, to) for to in everyone], [len(part(sender, end.rank)) for sender in everyone])
        assert found == [part(sender, end.rank) for sender in everyone]
        assert end.all_to_all([b""] * end.size, [0] * end.size) == [b""] * end.size
        only_first = [b"abc" if end.rank == 0 else b""] * end.size
        assert end.all_to_all(only_first, [3] + [0] * (end.size - 1)) == [b"abc"] + [b""] * (end.size - 1)
        expected = [3, 2] + [2] * (end.size - 2) if end.rank == 1 else [2] * end.size
        error = raised(lambda expected=expected: end.all_to_all([b"ab"] * end.size, expected))
        assert isinstance(error, shardwright.InvalidArgumentError) and re.search("rank 1:? .*expects", str(error)), repr(error)


@ranks(2)
def what_a_rank_receives_in_a_save_is_in_the_report(folder):
    report = shardwright.torch.save({"w": whole()}, folder / "p")
    assert 0 < report.bytes_received <= 65536, report
    assert report.collective == transport_name(), report


# ---- ranks that stop, come late, or never ----


@ranks(2, 4)
def any_exception_of_one_rank_ends_the_call_on_all(folder):
    calls = (lambda state: shardwright.torch.save(state, folder / "p"),
             lambda state: shardwright.torch.save_async(state, folder / "p"),
             lambda state: shardwright.torch.load(folder / "p", into=state))
    for kind in (RuntimeError, KeyError, torch.OutOfMemoryError, KeyboardInterrupt):
        for call in calls:
            own = kind("no memory here" if kind is KeyError else "no memory here\nframe #0")
            inner = Raising(own) if dist.get_rank() == 1 else {"v": torch.ones(1)}
            error = raised(lambda call=call, inner=inner: call({"w": torch.ones(4), "inner": inner}))
            if dist.get_rank() == 1:
                assert error is own, repr(error)
            else:
                assert isinstance(error, shardwright.HostExceptionError), repr(error)
                assert "rank 1" in str(error) and kind.__name__ in str(error) and "no memory here" in str(error)
                assert "frame" not in str(error)
    shardwright.torch.save({"w": torch.ones(4)}, folder / "p")


@ranks(2)
def an_option_that_is_wrong_on_one_rank_fails_on_all(folder):
    options = {"durability": "some"} if dist.get_rank() else {}
    error = raised(lambda: shardwright.torch.save({"w": torch.ones(4)}, folder / "p", **options))
    assert isinstance(error, shardwright.InvalidArgumentError) and "durability" in str(error), repr(error)


@ranks(2)
def the_deadline_holds_for_a_rank_that_never_comes(folder):
    group = dist.new_group([0, 1])
    if dist.get_rank() == 0:
        error = raised(lambda: shardwright.torch.save({"w": torch.ones(4)}, folder / "p", process_group=group, deadline=0.5))
        assert isinstance(error, shardwright.DeadlineExceededError) and "[1]" in str(error), repr(error)


@ranks(4)
def groups_of_some_ranks_leave_the_order_of_groups_alone(folder):
    some = dist.new_group([2, 3])
    if dist.get_rank() in (2, 3):
        shardwright.torch.save_async({"w": torch.ones(4)}, folder / "p", process_group=some).result(60)
    everyone, number = dist.new_group([0, 1, 2, 3]), torch.ones(1)
    dist.all_reduce(number, group=everyone)
    assert number.item() == 4
