# SPDX-License-Identifier: Apache-2.0
"""Cases of directories that ranks write together for torch, read by torch and the other way round."""
import os

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from cases import empty_like, placed, ranks, whole
from shardwright.torch.dcp import FileSystemWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard


# ---- vocabulary ----

def path_of(folder, name):
    return os.path.join(folder, name)


def model_state(size):
    """Tensors on a line of ranks and, of four, on a 2 x 2 mesh; uneven, replicated, empty on some ranks."""
    line = init_device_mesh("cpu", (size,))
    state = {"rows": placed(whole((10, 7)), line, Shard(0)), "columns": placed(whole((6, 9), torch.bfloat16), line, Shard(1)),
             "all": placed(whole((5,), torch.int64), line, Replicate()), "few": placed(whole((1, 4)), line, Shard(0)),
             "large": placed(whole((1000, 301)), line, Shard(0))}
    if size == 4:
        mesh = init_device_mesh("cpu", (2, 2))
        state["grid"] = placed(whole((9, 5)), mesh, Shard(0), Shard(1))
        state["twice"] = placed(whole((9, 5)), mesh, Shard(0), Shard(0))
        state["half"] = placed(whole((8, 3)), mesh, Replicate(), Shard(0))
    return state


def same_everywhere(loaded, saved):
    for name, tensor in saved.items():
        assert torch.equal(loaded[name].to_local(), tensor.to_local()), name


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(13, 13) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


# ---- cases ----

@ranks(2, 4)
def torch_loads_what_ranks_wrote_together(folder):
    saved = model_state(dist.get_world_size())
    path = path_of(folder, "written")
    for number in (1, 2):
        shardwright.torch.save({"model": saved, "step": number, "lr": 0.5}, path, format="torch-dcp")
    loaded = {"model": {name: empty_like(tensor) for name, tensor in saved.items()}, "step": 0, "lr": 0.0}
    dcp.load(loaded, checkpoint_id=path)
    same_everywhere(loaded["model"], saved)
    assert loaded["step"] == 2 and loaded["lr"] == 0.5
    names = [name for name in os.listdir(path) if name.endswith(".distcp")]
    assert len(names) <= dist.get_world_size(), names
    dist.barrier()


@ranks(2, 4)
def digests_of_what_torch_and_we_wrote_are_equal(folder):
    saved = model_state(dist.get_world_size())
    shardwright.torch.save({"model": saved}, path_of(folder, "digests ours"), format="torch-dcp")
    dcp.save({"model": saved}, checkpoint_id=path_of(folder, "digests torchs"))
    with shardwright.open(path_of(folder, "digests ours")) as ours, \
            shardwright.open(path_of(folder, "digests torchs")) as torchs:
        assert ours.digest("sha256") == torchs.digest("sha256")
    again = {"model": {name: empty_like(tensor) for name, tensor in saved.items()}}
    shardwright.torch.load(path_of(folder, "digests torchs"), again)
    same_everywhere(again["model"], saved)


@ranks(2, 4)
def our_writer_inside_torchs_save_writes_with_digests(folder):
    path = path_of(folder, "storage writer")
    saved = model_state(dist.get_world_size())
    for _ in range(2):
        dcp.save({"model": saved, "step": 3}, storage_writer=FileSystemWriter(path))
    names = os.listdir(path)
    generations = {name.split(".")[1] for name in names if name.endswith(".distcp")}
    assert {f".shardwright.{each}.digests" for each in generations} == {n for n in names if n.endswith(".digests")}, names
    assert len(generations) == 1, names
    with shardwright.open(path) as checkpoint:
        assert checkpoint.info()["digests"], checkpoint.info()
    for load in (lambda state: dcp.load(state, checkpoint_id=path), lambda state: shardwright.torch.load(path, state)):
        loaded = {"model": {name: empty_like(tensor) for name, tensor in saved.items()}, "step": 0}
        load(loaded)
        same_everywhere(loaded["model"], saved)
        assert loaded["step"] == 3
    dist.barrier()


@ranks(2, 4)
def ranks_write_over_a_checkpoint_of_torch(folder):
    path = path_of(folder, "over torch")
    saved = model_state(dist.get_world_size())
    dcp.save({"model": saved, "old": placed(whole((4,)), init_device_mesh("cpu", (dist.get_world_size(),)), Shard(0))},
             checkpoint_id=path)
    shardwright.torch.save({"model": saved}, path, format="torch-dcp")
    dist.barrier()  # rank 0 tidies up when the others know that it is done
    assert not [name for name in os.listdir(path) if name.endswith("_0.distcp")]
    loaded = {"model": {name: empty_like(tensor) for name, tensor in saved.items()}}
    dcp.load(loaded, checkpoint_id=path)
    same_everywhere(loaded["model"], saved)
    dist.barrier()


@ranks(2, 4)
def entries_of_ranks_come_back_to_their_ranks(folder):
    path = path_of(folder, "rank local")
    rank = dist.get_rank()
    mine = {"rng": torch.full((5,), rank), "position": rank * 10, "shared": torch.ones(3)}
    rules = {"rng": "rank_local", "position": "rank_local"}
    shardwright.torch.save(mine, path, format="torch-dcp", kind=rules)
    loaded = {"rng": torch.full((5,), -1), "position": -1, "shared": torch.zeros(3)}
    shardwright.torch.load(path, loaded)
    assert loaded["rng"][0] == rank and loaded["position"] == rank * 10 and loaded["shared"].all()
    other = (rank + 1) % dist.get_world_size()
    plain = {f"rng.rank-{other}": torch.full((5,), -1), f"position.rank-{other}": -1, "shared": torch.zeros(3)}
    dcp.load(plain, checkpoint_id=path, no_dist=True)
    assert plain[f"rng.rank-{other}"][0] == other and plain[f"position.rank-{other}"] == other * 10


@ranks(2, 4)
def a_sharded_model_and_its_optimizer_go_on_in_torch(folder):
    def made():
        torch.manual_seed(7)
        model = Model()
        for layer in model.layers:
            fully_shard(layer, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        return model, torch.optim.AdamW(model.parameters(), lr=0.01)

    def step(model, optimizer, number):
        torch.manual_seed(number)
        loss = model(torch.randn(4, 13)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    path = path_of(folder, "fsdp")
    model, optimizer = made()
    step(model, optimizer, 1)
    parameters, moments = get_state_dict(model, optimizer)
    shardwright.torch.save({"model": parameters, "optim": moments}, path, format="torch-dcp")
    wanted = [step(model, optimizer, number) for number in (2, 3)]
    other, its_optimizer = made()
    parameters, moments = get_state_dict(other, its_optimizer)
    state = {"model": parameters, "optim": moments}
    dcp.load(state, checkpoint_id=path)
    set_state_dict(other, its_optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    assert [step(other, its_optimizer, number) for number in (2, 3)] == wanted
