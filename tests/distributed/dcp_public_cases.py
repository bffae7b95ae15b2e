# SPDX-License-Identifier: Apache-2.0
"""What torch's public tests of DCP ask for and no other file of cases does: FSDP1 in its forms, tensors that change their
class, fine-tuning, experts and stages on meshes of their own, and one library after the other on every parallelism."""
import json
import os
import subprocess
from pathlib import Path

import shardwright
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as theirs
from cases import agreed, empty_like, placed, ranks, whole
from dcp_cases import line, sharded, specs
from dcp_state_cases import full, kinds, state_of, step, trainer
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import shardwright.torch.dcp as dcp

BUILD = Path(os.environ.get("SHW_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
BOTH = {"torch": (theirs.save, dcp.load), "ours": (dcp.save, theirs.load)}  # what one wrote the other loads


# ---- vocabulary ----

def mlp(seed, width=10):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(width, 14), torch.nn.ReLU(), torch.nn.Linear(14, 6))


def fsdp1(seed, mesh, strategy=ShardingStrategy.FULL_SHARD):
    return FullyShardedDataParallel(mlp(seed), device_mesh=mesh, sharding_strategy=strategy, use_orig_params=True,
                                    device_id=torch.device("cpu"))


def model_state(net):
    return {"model": get_model_state_dict(net)}


def local_parts(tensor):
    if isinstance(tensor, ShardedTensor):
        return [shard.tensor for shard in tensor.local_shards()]
    return [tensor.to_local() if isinstance(tensor, DTensor) else tensor]


def values_of(net):
    whole_state = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=False))
    return agreed({name: value.clone() for name, value in whole_state.items()})


def filled_from(net, path, load):
    state = model_state(net)
    load(state, checkpoint_id=path)
    set_model_state_dict(net, state["model"])


def goes_to_others(made, folder):
    """Each kind of module, saved by one library, is loaded into each other kind by the other one."""
    for saver, (save, load) in BOTH.items():
        for name, make in made.items():
            net = make(1)
            save(model_state(net), checkpoint_id=folder / f"{saver} {name}")
            wanted = values_of(net)
            for other in made.values():
                again = other(2)
                filled_from(again, folder / f"{saver} {name}", load)
                found = values_of(again)
                assert found.keys() == wanted.keys() and all(torch.equal(found[k], wanted[k]) for k in wanted), (saver, name)


def same_digests(*paths):
    """On the command line; by one rank."""
    if dist.get_rank() == 0:
        told = [subprocess.run([BUILD / "bin" / "shardwright", "digest", "--json", path], capture_output=True, text=True,
                               check=True).stdout for path in paths]
        assert json.loads(told[0]) and all(json.loads(each) == json.loads(told[0]) for each in told), paths
    dist.barrier()


# ---- one library after the other ----

@ranks(2, 3, 4)
def every_parallelism_loads_what_the_other_library_saved_of_every_other(folder):
    for saver, (save, load) in BOTH.items():
        for kind in kinds():
            net, made = trainer(kind, 1)
            step(net, made, 0)
            state = state_of(net, made, True, 1)
            save(state, checkpoint_id=folder / f"{saver} {kind}")
            for other in kinds():
                again, its = trainer(other, 7)
                target = state_of(again, its, True)
                load(target, checkpoint_id=folder / f"{saver} {kind}")
                assert target["steps"] == 1
                for part in ("model", "optimizer"):
                    for name, value in target[part].items():
                        wanted = full(state[part][name])
                        assert torch.equal(full(value), wanted) if torch.is_tensor(value) else value == wanted, (kind, other, name)
    for kind in kinds():
        same_digests(folder / f"torch {kind}", folder / f"ours {kind}")


@ranks(2)
def a_job_goes_to_the_other_library_and_back_with_equal_losses(folder):
    """Five steps in one go, and the same steps with a checkpoint and another library behind each."""
    net, made = trainer("fsdp", 1)
    wanted = [step(net, made, number) for number in range(5)]
    net, made = trainer("fsdp", 1)
    found = [step(net, made, 0)]
    for number, saver in enumerate(("torch", "ours", "torch", "ours"), 1):
        save, load = BOTH[saver]
        save(state_of(net, made, False, number), checkpoint_id=folder / f"{number}")
        net, made = trainer("fsdp", 50 + number)
        state = state_of(net, made, False)
        load(state, checkpoint_id=folder / f"{number}")
        assert state["steps"] == number
        set_model_state_dict(net, state["model"])
        set_optimizer_state_dict(net, made, state["optimizer"])
        found.append(step(net, made, number))
    assert found == wanted


# ---- FSDP1, alone and over other meshes ----

@ranks(2)
def fsdp1_and_tensor_parallelism_load_each_other(folder):
    def tensor_parallel(seed):
        return parallelize_module(mlp(seed), line(), {"0": ColwiseParallel(), "2": RowwiseParallel()})

    goes_to_others({"fsdp1": lambda seed: fsdp1(seed, line()), "tp": tensor_parallel, "plain": mlp}, folder)


@ranks(4)
def hybrid_shards_of_fsdp1_are_those_of_full_ones(folder):
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    goes_to_others({"hybrid": lambda seed: fsdp1(seed, grid, ShardingStrategy.HYBRID_SHARD),
                    "full": lambda seed: fsdp1(seed, line())}, folder)


@ranks(4)
def fsdp1_over_tensor_parallelism_comes_back(folder):
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

    def both(seed):
        net = parallelize_module(mlp(seed), grid["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        return FullyShardedDataParallel(net, device_mesh=grid["dp"], use_orig_params=True, device_id=torch.device("cpu"))

    goes_to_others({"both": both, "full": lambda seed: fsdp1(seed, line())}, folder)


# ---- tensors of old ----

@ranks(2)
def sharded_tensors_become_plain_ones_and_dtensors_and_the_reverse(folder):
    plain = whole((8, 10))
    for saver, (save, load) in BOTH.items():
        for i, spec in enumerate([*specs(), ChunkShardingSpec(dim=0, placements=["rank:1/cpu"])]):
            made = {"sharded": lambda spec=spec, fill=True: sharded(spec, fill), "plain": lambda fill=True: plain * fill,
                    "placed": lambda fill=True: placed(plain * fill, line(), Shard(0))}
            for name, make in made.items():
                path = folder / f"{saver} {name} {i}"
                save({"t": make()}, checkpoint_id=path)
                for other in made.values():
                    target = {"t": other(fill=False)}
                    load(target, checkpoint_id=path)
                    assert all(map(torch.equal, local_parts(target["t"]), local_parts(other()))), (saver, name)


@ranks(2)
def tensors_that_name_their_boxes_go_to_other_boxes_and_dtensors(folder):
    rank, whole_tensor = dist.get_rank(), whole((9, 4))

    def part(begin, count, fill):
        local = whole_tensor[begin:begin + count].clone() * fill
        local.global_shape, local.global_offsets = (9, 4), ((begin, 0),)
        local.local_offsets, local.local_sizes = ((0, 0),), ((count, 4),)
        return local

    first, second = [(0, 7), (7, 2)][rank], [(0, 3), (3, 6)][rank]
    for saver, (save, load) in BOTH.items():
        save({"w": part(*first, 1)}, checkpoint_id=folder / saver)
        target = {"w": part(*second, 0)}
        load(target, checkpoint_id=folder / saver)
        assert torch.equal(target["w"], whole_tensor[second[0]:sum(second)]), saver
        target = {"w": empty_like(placed(whole_tensor, line(), Shard(1)))}
        load(target, checkpoint_id=folder / saver)
        assert torch.equal(target["w"].full_tensor(), whole_tensor), saver


# ---- states that differ from rank to rank ----

@ranks(2, 4)
def keys_may_come_in_another_order_on_each_rank(folder):
    names = ["foo", "bar", "baz"]
    mine = names[dist.get_rank() % 3:] + names[:dist.get_rank() % 3]
    for format in ("torch-dcp", "native"):
        dcp.save({name: whole(start=names.index(name)) for name in mine}, checkpoint_id=folder / format, format=format)
        target = {name: torch.zeros(10, 7) for name in reversed(mine)}
        dcp.load(target, checkpoint_id=folder / format)
        assert all(torch.equal(target[name], whole(start=i)) for i, name in enumerate(names))


@ranks(4)
def experts_live_on_meshes_of_their_own(folder):
    """FSDP for all, and for each rank's expert a mesh of that rank alone: expert parallelism of one expert per rank."""
    def made(seed):
        net = torch.nn.ModuleDict({"dense": mlp(seed)})
        fully_shard(net["dense"], mesh=line())
        rank, meshes = dist.get_rank(), [DeviceMesh("cpu", [r]) for r in range(4)]
        expert = mlp(seed + 10 + rank, width=5)
        fully_shard(expert, mesh=meshes[rank])
        net[f"expert{rank}"] = expert
        return net

    for saver, (save, load) in BOTH.items():
        net = made(1)
        save(model_state(net), checkpoint_id=folder / saver)
        again = made(30)
        filled_from(again, folder / saver, load)
        for name, value in get_model_state_dict(again).items():
            assert torch.equal(value.to_local(), get_model_state_dict(net)[name].to_local()), (saver, name)
        with shardwright.open(folder / saver) as checkpoint:
            assert {key.split(".")[1] for key in checkpoint.keys()} == {"dense", *[f"expert{r}" for r in range(4)]}


@ranks(4)
def stages_of_a_sharded_pipeline_are_saved_together(folder):
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = grid.get_local_rank("pp")

    def made(seed):
        layers = mlp(seed)
        part = torch.nn.ModuleDict({name: fully_shard(layers[int(name)], mesh=grid["dp"]) for name in ("0", "2")[stage]})
        return part, torch.optim.AdamW(part.parameters(), lr=0.1)

    for saver, (save, load) in BOTH.items():
        part, optimizer = made(1)
        for parameter in part.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        options = StateDictOptions(flatten_optimizer_state_dict=True)
        state = {"model": get_model_state_dict(part), "optimizer": get_optimizer_state_dict(part, optimizer, options=options)}
        save(state, checkpoint_id=folder / saver)
        again, other = made(2)
        target = {"model": get_model_state_dict(again), "optimizer": get_optimizer_state_dict(again, other, options=options)}
        load(target, checkpoint_id=folder / saver)
        for kind, found in target.items():
            assert all(torch.equal(full(value), full(state[kind][name])) for name, value in found.items() if torch.is_tensor(value))
        whole_model = mlp(3)
        filled_from(whole_model, folder / saver, load)  # each rank, all stages
        assert all(torch.equal(full(value), dict(whole_model.named_parameters())[name]) for name, value in part.named_parameters())


@ranks(2)
def a_model_is_tuned_on_top_of_another(folder):
    """The body comes from a checkpoint of its own and is frozen; what is saved then is the head alone."""
    class Tuned(torch.nn.Module):
        def __init__(self, seed):
            super().__init__()
            self.body = mlp(seed)
            torch.manual_seed(seed + 1)
            self.head = torch.nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.body(x))

    def made(seed):
        net = Tuned(seed)
        net.body.requires_grad_(False)
        fully_shard(net.body)
        fully_shard(net)
        return net, torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.1)

    def trained_step(net, optimizer):
        net(torch.ones(2, 10)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    body_keys = StateDictOptions(keep_submodule_prefixes=False)
    head_alone = StateDictOptions(ignore_frozen_params=True)
    for saver, (save, load) in BOTH.items():
        pretrained = mlp(8)
        fully_shard(pretrained)
        save(model_state(pretrained), checkpoint_id=folder / f"{saver} body")
        net, optimizer = made(1)

        def body_of(net, path, load=load):
            state = get_model_state_dict(net, submodules={net.body}, options=body_keys)
            load({"model": state}, checkpoint_id=path)
            set_model_state_dict(net, {net.body: state}, options=StateDictOptions(strict=False))

        body_of(net, folder / f"{saver} body")
        trained_step(net, optimizer)
        state = {"model": get_model_state_dict(net, options=head_alone),
                 "optimizer": get_optimizer_state_dict(net, optimizer, options=head_alone)}
        assert all(name.startswith("head.") for name in state["model"])
        save(state, checkpoint_id=folder / f"{saver} head")
        again, other = made(40)
        body_of(again, folder / f"{saver} body")
        target = {"model": get_model_state_dict(again, options=head_alone),
                  "optimizer": get_optimizer_state_dict(again, other, options=head_alone)}
        load(target, checkpoint_id=folder / f"{saver} head")
        set_model_state_dict(again, target["model"], options=StateDictOptions(strict=False))
        set_optimizer_state_dict(again, other, target["optimizer"], options=StateDictOptions(strict=False))
        for both in ((net, optimizer), (again, other)):
            trained_step(*both)
        for (name, a), (_, b) in zip(net.named_parameters(), again.named_parameters(), strict=True):
            assert torch.equal(a.to_local(), b.to_local()), (saver, name)
