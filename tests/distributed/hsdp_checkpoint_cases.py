# SPDX-License-Identifier: Apache-2.0
"""Cases of shardwright.torch.hsdp: what some ranks save, any number of ranks in any mesh continues, as one process would."""
import shardwright.torch
import torch
import torch.distributed as dist
from cases import ranks
from hsdp_cases import batch, loss_of, network, sharded, step_alone
from shardwright.torch.hsdp import CPUOffloadPolicy, MixedPrecisionPolicy
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh

BEFORE, AFTER = 4, 10
MESHES = {"1": [0], "2": [0, 1], "3": [0, 1, 2], "4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]], "4x1": [[0], [1], [2], [3]]}


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, steps):
    for step in steps:
        loss_of(model, batch(step, dist.get_rank())).backward()
        optimizer.step()
        optimizer.zero_grad()


def state_of(model, optimizer):
    weights, states = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": states}


def mesh_of(ranks_of_it):
    names = ("replicate", "shard")[-torch.tensor(ranks_of_it).ndim:]
    return DeviceMesh("cpu", ranks_of_it, mesh_dim_names=names)


def group_over(mesh):
    """Of all ranks of a mesh."""
    return mesh.get_group() if mesh.ndim == 1 else None


def whole(value):
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def assert_continued(mesh, path, **options):
    """The mesh loads, trains on, and has the bits of one process: parameters and the state of the optimizer."""
    shape = tuple(mesh.mesh.shape)
    shards, replicas = shape[-1], shape[0] if mesh.ndim == 2 else 1
    model = sharded(network(seed=1), mesh=mesh, **options)
    optimizer = adamw(model)
    state = state_of(model, optimizer)
    shardwright.torch.load(path, into=state, process_group=group_over(mesh))
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    train(model, optimizer, range(BEFORE, BEFORE + AFTER))
    alone = network()
    alone_optimizer = adamw(alone)
    for step in range(BEFORE + AFTER):
        step_alone(alone, alone_optimizer, step, *((4, 1) if step < BEFORE else (shards, replicas)))
    for (name, found), wanted in zip(model.named_parameters(), alone.parameters(), strict=True):
        assert torch.equal(whole(found), wanted), f"{shape}: {name}"
        for key, value in alone_optimizer.state[wanted].items():
            assert torch.equal(whole(optimizer.state[found][key]), value), f"{shape}: {key} of {name}"


@ranks(4)
def hsdp_any_mesh_continues_what_four_ranks_saved_t23_t24(folder):
    model = sharded(network())
    optimizer = adamw(model)
    train(model, optimizer, range(BEFORE))
    shardwright.torch.save(state_of(model, optimizer), f"{folder}/matrix")
    for name, ranks_of_it in MESHES.items():
        mesh = mesh_of(ranks_of_it)
        if mesh.get_coordinate() is not None:
            assert_continued(mesh, f"{folder}/matrix")
            if name == "2":
                assert_continued(mesh, f"{folder}/matrix", offload_policy=CPUOffloadPolicy(pin_memory=False))
        dist.barrier()


@ranks(4)
def hsdp_checkpoints_know_no_dtype_policy_t24(folder):
    """What is saved is in the dtypes of the parameters, whatever training computes in."""
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = sharded(network(), mp_policy=half)
    optimizer = adamw(model)
    train(model, optimizer, range(BEFORE))
    shardwright.torch.save(state_of(model, optimizer), f"{folder}/half")
    other = sharded(network(seed=1))
    other_optimizer = adamw(other)
    state = state_of(other, other_optimizer)
    shardwright.torch.load(f"{folder}/half", into=state)
    set_state_dict(other, other_optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for found, wanted in zip(other.parameters(), model.parameters(), strict=True):
        assert found.dtype == torch.float32 and torch.equal(found.to_local(), wanted.to_local())
        for key, value in optimizer.state[wanted].items():
            assert torch.equal(whole(other_optimizer.state[found][key]), whole(value)), key
    train(other, other_optimizer, range(BEFORE, BEFORE + 2))
