# SPDX-License-Identifier: Apache-2.0
"""Cases of shardwright.torch.dcp with the states that trainers have: FSDP2, HSDP, TP, DDP, optimizers in both forms of their
keys, saves in the background, and jobs that go on through the other library."""
import concurrent.futures
import os
import random
import warnings

import shardwright
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as theirs
from cases import raised, ranks, whole
from dcp_cases import FORMATS, Exact, line
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import shardwright.torch.dcp as dcp

WIDTH = 10  # no multiple of three or four: shards are uneven


# ---- vocabulary ----

class Net(torch.nn.Module):
    """Two layers, a frozen one, and an output that shares the weight of the embedding."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(7, WIDTH)
        self.up = torch.nn.Linear(WIDTH, 12)
        self.down = torch.nn.Linear(12, WIDTH)
        self.frozen = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.frozen.weight.requires_grad_(False)
        self.output = torch.nn.Linear(WIDTH, 7, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, numbers):
        x = self.embedding(numbers)
        return self.output(x + self.frozen(self.down(torch.relu(self.up(x)))))


def parallel(kind, seed):
    net = Net(seed)
    if kind == "ddp":
        return DistributedDataParallel(net)
    if kind == "plain":
        return net
    mesh = line()
    if kind in ("hsdp", "fsdp_tp"):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    if kind == "fsdp_tp":
        parallelize_module(net, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(net, mesh=mesh["dp"])
    elif kind == "tp":
        parallelize_module(net, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    else:
        fully_shard([net.up, net.down], mesh=mesh)
        fully_shard(net, mesh=mesh)
    return net


def kinds():
    return ["fsdp", "ddp", "tp", "plain"] + (["hsdp", "fsdp_tp"] if dist.get_world_size() == 4 else [])


def trainer(kind, seed, optimizer="adamw"):
    net = parallel(kind, seed)
    trained = [p for p in net.parameters() if p.requires_grad]
    made = (torch.optim.AdamW(trained, lr=0.01) if optimizer == "adamw" else torch.optim.SGD(trained, lr=0.01, momentum=0.9))
    return net, made


def step(net, optimizer, number):
    """A training step; the loss as a number. All ranks see the same data, so that every parallelism does the same."""
    generator = torch.Generator().manual_seed(number)
    numbers = torch.randint(0, 7, (6,), generator=generator)
    loss = torch.nn.functional.cross_entropy(net(numbers), (numbers + 1) % 7)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def options(flat):
    return StateDictOptions(flatten_optimizer_state_dict=flat)


def state_of(net, optimizer, flat, steps=0):
    model, states = get_state_dict(net, optimizer, options=options(flat))
    return {"model": model, "optimizer": states, "steps": steps}


def restored(net, optimizer, path, flat, load):
    state = state_of(net, optimizer, flat)
    load(state, checkpoint_id=path)
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"], options=options(flat))
    return state


def full(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


# ---- a job goes on ----

@ranks(2, 3, 4)
def a_job_goes_on_through_the_other_library_with_equal_losses(folder):
    for kind in [k for k in kinds() if k != "plain"]:
        for optimizer, flat in (("adamw", False), ("sgd", True)):
            net, made = trainer(kind, 1, optimizer)
            for number in range(2):
                step(net, made, number)
            state = state_of(net, made, flat, 2)
            places = {"torch": folder / f"{kind}{optimizer}t", **{f: folder / f"{kind}{optimizer}{f}" for f in FORMATS}}
            theirs.save(state, checkpoint_id=places["torch"])
            for format in FORMATS:
                dcp.save(state, checkpoint_id=places[format], format=format)
            wanted = [step(net, made, number) for number in range(2, 5)]
            for place, load in (("torch", dcp.load), ("torch-dcp", theirs.load), ("torch-dcp", dcp.load), ("native", dcp.load)):
                again, other = trainer(kind, 99, optimizer)
                found = restored(again, other, places[place], flat, load)
                assert found["steps"] == 2
                assert [step(again, other, number) for number in range(2, 5)] == wanted, (kind, optimizer, place)


@ranks(4)
def every_parallelism_loads_what_every_other_saved(folder):
    for optimizer, flat in (("adamw", True), ("sgd", False)):
        for kind in kinds():
            net, made = trainer(kind, 1, optimizer)
            step(net, made, 0)
            state = state_of(net, made, flat, 1)
            dcp.save(state, checkpoint_id=folder / f"{kind}{optimizer}")
            wanted = {name: full(value).clone() for name, value in state["model"].items()}
            for other in kinds():
                again, its = trainer(other, 7, optimizer)
                restored(again, its, folder / f"{kind}{optimizer}", flat, dcp.load)
                found = state_of(again, its, flat)
                for name, value in found["model"].items():
                    assert torch.equal(full(value), wanted[name]), (kind, other, name)


@ranks(2)
def stateful_values_are_saved_and_restored(folder):
    class Loader:
        def __init__(self, position):
            self.position = position

        def state_dict(self):
            return {"position": self.position, "random": random.Random(self.position).getstate()}

        def load_state_dict(self, state):
            self.position = state["position"]
            assert state["random"] == random.Random(self.position).getstate()

    net, made = trainer("fsdp", 1)
    step(net, made, 0)
    loader = Loader(5)
    for format in FORMATS:
        dcp.save({"net": net, "loader": loader}, checkpoint_id=folder / format, format=format)
        again, other = parallel("fsdp", 9), Loader(0)
        dcp.load({"net": again, "loader": other}, checkpoint_id=folder / format)
        assert other.position == 5
        assert torch.equal(full(again.up.weight), full(net.up.weight))


@ranks(2)
def states_on_the_meta_device_get_memory_and_offloaded_ones_are_filled(folder):
    net, _ = trainer("fsdp", 1)
    dcp.save({"model": net.state_dict()}, checkpoint_id=folder / "c")
    with torch.device("meta"):
        empty = Net(0)
    fully_shard(empty)
    state = {"model": empty.state_dict()}
    dcp.load(state, checkpoint_id=folder / "c")
    empty.load_state_dict(state["model"], assign=True)
    assert torch.equal(full(empty.down.weight), full(net.down.weight))
    cpu = {"model": {name: value.cpu() for name, value in parallel("fsdp", 3).state_dict().items()}}
    dcp.load(cpu, checkpoint_id=folder / "c")
    assert torch.equal(full(cpu["model"]["up.bias"]), full(net.up.bias))


# ---- in the background ----

@ranks(2, 4)
def background_saves_see_the_state_of_the_call(folder):
    net, made = trainer("fsdp", 1)
    for number, format in enumerate(FORMATS):
        step(net, made, number)
        state = state_of(net, made, False, number)
        wanted = {name: full(value).clone() for name, value in state["model"].items()}
        future = dcp.async_save(state, checkpoint_id=folder / format, format=format)
        assert isinstance(future, concurrent.futures.Future)
        step(net, made, 10)  # over the default group, while the save runs
        found = future.result(100)
        assert "model.up.weight" in found.state_dict_metadata and os.path.exists(folder / format)
        again, other = trainer("fsdp", 2)
        target = state_of(again, other, False)
        dcp.load(target, checkpoint_id=folder / format)
        assert target["steps"] == number
        assert all(torch.equal(full(value), wanted[name]) for name, value in target["model"].items())


@ranks(2)
def one_save_in_the_background_at_a_time(folder):
    state = {"w": torch.zeros(1000)}
    futures = []
    for number in range(6):
        state["w"].fill_(number)
        futures.append(dcp.async_save(state, checkpoint_id=folder / f"c{number}", format=FORMATS[number % 2]))
        assert all(future.done() for future in futures[:-1])
    for number, future in enumerate(futures):
        future.result(100)
        target = {"w": torch.ones(1000)}
        dcp.load(target, checkpoint_id=folder / f"c{number}")
        assert torch.equal(target["w"], torch.full((1000,), float(number)))


@ranks(2)
def failures_in_the_background_come_out_of_the_future_and_the_next_save_works(folder):
    future = dcp.async_save({"w": whole()}, storage_writer=Exact({"write_data": [1]}))
    error = raised(lambda: future.result(100))
    assert list(error.failures) == [1] and isinstance(error, OSError), error
    (folder / "file").write_text("x") if dist.get_rank() == 0 else None
    dist.barrier()
    for format in FORMATS:
        error = raised(lambda format=format: dcp.async_save({"w": whole()}, checkpoint_id=folder / "file" / "c",
                                                            format=format).result(100))
        assert isinstance(error, theirs.CheckpointException), error
    dcp.async_save({"w": whole()}, checkpoint_id=folder / "c").result(100)


@ranks(2)
def stagers_of_every_kind_work(folder):
    state = {"w": whole(), "n": 3}
    blocking = dcp.staging.DefaultStager(dcp.staging.StagingOptions(False, False, False, False))
    future = dcp.async_save(state, checkpoint_id=folder / "a", async_stager=blocking)
    assert future.result(100).state_dict_metadata["w"].size == (10, 7)
    threaded = dcp.staging.DefaultStager(dcp.staging.StagingOptions(False, False, True, False))
    response = dcp.async_save(state, checkpoint_id=folder / "b", async_stager=threaded)
    assert isinstance(response, theirs.state_dict_saver.AsyncSaveResponse)
    assert response.staging_completion.result(100) is None and response.upload_completion.result(100) is not None
    cached = dcp.FileSystemWriter(folder / "c", cache_staged_state_dict=False, single_file_per_rank=False)
    dcp.async_save(state, storage_writer=cached).result(100)

    class Failing(dcp.staging.BlockingAsyncStager):
        def stage(self, state_dict):
            raise OSError("no memory today")

    assert "no memory today" in str(raised(lambda: dcp.async_save(state, checkpoint_id=folder / "d", async_stager=Failing())))
    for name in "abc":
        target = {"w": torch.zeros(10, 7), "n": None}
        theirs.load(target, checkpoint_id=folder / name)
        assert torch.equal(target["w"], whole()) and target["n"] == 3
    blocking.close()
    threaded.close()


@ranks(2)
def a_daemon_process_saves(folder):
    process = dcp.AsyncCheckpointerType.PROCESS
    net, made = trainer("fsdp", 1)
    step(net, made, 0)
    for number, format in enumerate((*FORMATS, "torch-dcp")):
        state = state_of(net, made, False, number)
        future = dcp.async_save(state, checkpoint_id=folder / f"c{number}", async_checkpointer_type=process, format=format)
        assert "model.up.weight" in future.result(150).state_dict_metadata
        target = state_of(*trainer("fsdp", 2), False)
        dcp.load(target, checkpoint_id=folder / f"c{number}")
        assert target["steps"] == number
        assert torch.equal(full(target["model"]["up.weight"]), full(net.up.weight))
    error = raised(lambda: dcp.async_save({"w": whole()}, storage_writer=Exact({"write_data": [0]}),
                                          async_checkpointer_type=process).result(100))
    assert list(error.failures) == [0] and "no write_data today" in str(error), error
    dcp.async_save({"w": whole()}, checkpoint_id=folder / "after", async_checkpointer_type=process).result(100)


@ranks(2)
def a_daemon_that_dies_is_told_and_replaced(folder):
    from shardwright.torch.dcp import _daemon
    process = dcp.AsyncCheckpointerType.PROCESS
    dcp.async_save({"w": whole()}, checkpoint_id=folder / "a", async_checkpointer_type=process).result(150)
    if dist.get_rank() == 1:
        [daemon] = _daemon._daemons.values()
        daemon._process.kill()
        daemon._process.join()
    dist.barrier()
    dcp.async_save({"w": whole()}, checkpoint_id=folder / "b", async_checkpointer_type=process).result(150)
    target = {"w": torch.zeros(10, 7)}
    dcp.load(target, checkpoint_id=folder / "b")
    assert torch.equal(target["w"], whole())


# ---- other places and older interfaces ----

@ranks(2)
def optimizers_of_fsdp1_are_loaded_in_the_shape_of_the_model(folder):
    def made(seed):
        torch.manual_seed(seed)
        net = FullyShardedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)),
                                       device_id=torch.device("cpu"))
        return net, torch.optim.Adam(net.parameters(), lr=0.1)

    def sharded(net):
        return FullyShardedDataParallel.state_dict_type(net, StateDictType.SHARDED_STATE_DICT)

    net, optimizer = made(0)
    net(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    wanted = FullyShardedDataParallel.optim_state_dict(net, optimizer)["state"]
    with sharded(net):
        state = {"model": net.state_dict(), "optim": FullyShardedDataParallel.optim_state_dict(net, optimizer)}
        theirs.save(state, checkpoint_id=folder / "torch")
        dcp.save(state, checkpoint_id=folder / "ours")
    for name in ("torch", "ours"):
        again, other = made(1)
        with sharded(again):
            found = {"model": again.state_dict()}
            dcp.load(found, checkpoint_id=folder / name)
            again.load_state_dict(found["model"])
            state = dcp.load_sharded_optimizer_state_dict(found["model"], "optim", dcp.FileSystemReader(folder / name))
            other.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(again, other, state["optim"]))
        assert all(torch.equal(a, b) for a, b in zip(net.parameters(), again.parameters(), strict=True))
        loaded = FullyShardedDataParallel.optim_state_dict(again, other)["state"]
        assert all(torch.equal(loaded[key][part], wanted[key][part]) for key in wanted for part in ("exp_avg", "exp_avg_sq"))


@ranks(2)
def urls_go_to_fsspec(folder):
    net, made = trainer("fsdp", 1)
    for number, format in enumerate(FORMATS):
        state = state_of(net, made, False, number)
        url = f"file://{folder}/{format}"
        dcp.save(state, checkpoint_id=url, format=format)
        dcp.save(state, checkpoint_id=url, format=format)
        for load in (dcp.load, theirs.load) if format == "torch-dcp" else (dcp.load,):
            target = state_of(*trainer("fsdp", 2), False)
            load(target, checkpoint_id=url)
            assert torch.equal(full(target["model"]["up.weight"]), full(net.up.weight)) and target["steps"] == number


@ranks(2)
def the_names_of_before_work(folder):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dcp.save_state_dict({"w": whole()}, dcp.FileSystemWriter(folder / "a"))
        target = {"w": torch.zeros(10, 7)}
        dcp.load_state_dict(target, dcp.FileSystemReader(folder / "a"))
    assert torch.equal(target["w"], whole())
    assert sum(issubclass(w.category, FutureWarning) and "deprecated" in str(w.message) for w in caught) >= 2
    dcp.save_state_dict({"w": whole(start=1)}, dcp.FileSystemWriter(folder / "b"), coordinator_rank=1)
    dcp.load_state_dict(target, dcp.FileSystemReader(folder / "b"), coordinator_rank=1)
    assert torch.equal(target["w"], whole(start=1))


@ranks(2, 4)
def a_torch_save_file_is_loaded_onto_every_rank(folder):
    net = parallel("fsdp", 1)
    wanted = {name: full(value).clone() for name, value in net.state_dict().items()}
    if dist.get_rank() == 0:
        torch.save(wanted, folder / "m.pt")
    dist.barrier()
    for keywords in ({"storage_reader": dcp.format_utils.BroadcastingTorchSaveReader(),
                      "planner": dcp.format_utils.DynamicMetaLoadPlanner()}, {}):
        target = parallel("fsdp", 5).state_dict()
        dcp.load(target, checkpoint_id=folder / "m.pt", **keywords)
        differing = [name for name, value in target.items() if not torch.equal(full(value), wanted[name])]
        assert differing == [], (differing, keywords)
    error = raised(lambda: dcp.load({"n": 3}, checkpoint_id=folder / "m.pt",
                                    storage_reader=dcp.format_utils.BroadcastingTorchSaveReader(),
                                    planner=dcp.format_utils.DynamicMetaLoadPlanner()))
    assert isinstance(error, RuntimeError) and "Non-tensor value identified at n" in str(error), error


@ranks(2)
def hooks_of_a_planner_are_called_by_our_save_and_load(folder):
    class Halving(dcp.DefaultSavePlanner):
        def transform_object(self, write_item, object):
            found = super().transform_object(write_item, object)
            return found / 2 if isinstance(found, torch.Tensor) else found

    class Doubling(dcp.DefaultLoadPlanner):
        def commit_tensor(self, read_item, tensor):
            tensor.mul_(2)

    dcp.save({"w": whole(), "n": 1}, checkpoint_id=folder / "c", planner=Halving())
    target = {"w": torch.zeros(10, 7), "n": 0}
    dcp.load(target, checkpoint_id=folder / "c", planner=Doubling())
    assert torch.equal(target["w"], whole()) and target["n"] == 1
    error = raised(lambda: dcp.save({"w": whole()}, checkpoint_id=folder / "d", planner=Halving(), format="native"))
    assert isinstance(error, shardwright.InvalidArgumentError) and "format" in str(error), error
