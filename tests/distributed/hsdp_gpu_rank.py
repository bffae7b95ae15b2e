# SPDX-License-Identifier: Apache-2.0
"""A rank that trains with shardwright.torch.fully_shard on a GPU: `hsdp_gpu_rank.py FOLDER BACKEND`. All ranks have the first GPU
where they go over Gloo, each its own over NCCL. Learning rates are powers of two, so that products of steps are exact and a
processor which rounds them apart has the bits of a GPU that does not."""
import json
import os
import sys
import traceback
from pathlib import Path

import shardwright.torch
import torch
import torch.distributed as dist
from hsdp_cases import add, batch, loss_of, network, sharded
from shardwright.torch import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard, hsdp_sync_stream
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor

STEPS = 4
_cases = []


def on(backend, *sizes):
    """Runs where ranks go over that, of as many as there are; no sizes = any."""
    def keep(function):
        _cases.append((backend, sizes, function))
        return function
    return keep


def mesh_of(backend):
    """Over Gloo one of the default group: DeviceMesh would choose groups of its own."""
    if backend == "gloo":
        return DeviceMesh.from_group(dist.group.WORLD, "cuda")
    return init_device_mesh("cuda", (dist.get_world_size(),))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=2.0 ** -6, foreach=False)


def train(model, optimizer, first=0, to="cpu"):
    for step in range(first, first + STEPS):
        loss_of(model, batch(step, dist.get_rank()).to(to)).backward()
        optimizer.step()
        optimizer.zero_grad()


def trained_alone(steps=STEPS):
    """One process on the GPU: all ranks' batches, gradients added in rank order."""
    model = network().cuda()
    optimizer, size = sgd(model), dist.get_world_size()
    for step in range(steps):
        total = None
        for rank in range(size):
            total = add(total, torch.autograd.grad(loss_of(model, batch(step, rank).cuda()), list(model.parameters())))
        for param, grad in zip(model.parameters(), total, strict=True):
            param.grad = grad * (1.0 / size)
        optimizer.step()
        optimizer.zero_grad()
    return model


def assert_shards(model, whole, exactly=True):
    """Shards are the rows of the whole model that this rank has."""
    expected = whole.state_dict()
    for name, found in model.state_dict().items():
        parts = expected[name].chunk(dist.get_world_size())
        rank = dist.get_rank()
        part = parts[rank] if rank < len(parts) else expected[name][:0]
        local = found.to_local().to(part.device)
        assert torch.equal(local, part) if exactly else torch.allclose(local, part, rtol=1e-5, atol=1e-6), name


# ---- one rank, or several over one GPU: the bits of plain torch ----

def trains_to_the_bits_of_plain_torch(mesh):
    model = sharded(network(), mesh=mesh)  # made on the CPU
    optimizer = sgd(model)
    train(model, optimizer)  # with batches from there
    assert all(isinstance(each, DTensor) and each.is_cuda and each.to_local().is_cuda for each in model.parameters())
    assert_shards(model, trained_alone())
    handle = model[0].unshard(async_op=True)
    handle.wait()
    assert torch.equal(model[0].weight, trained_alone()[0].weight) and model[0].weight.is_cuda
    model[0].reshard()
    return model, optimizer


@on("nccl", 1)
def one_rank_trains_to_the_bits_of_plain_torch(folder):
    trains_to_the_bits_of_plain_torch(mesh_of("nccl"))


@on("gloo", 2)
def two_ranks_on_one_gpu_train_to_the_bits_of_one(folder):
    trains_to_the_bits_of_plain_torch(mesh_of("gloo"))


def options_change_nothing(mesh):
    expected = trained_alone()
    for options in ({"reshard_after_forward": False}, {"prefetch_depth": 2}, {"comm_fusion": False}, {"threshold": 200},
                    {"offload_policy": CPUOffloadPolicy()}, {"device": "cuda"}):
        model = sharded(network(), mesh=mesh, **options)
        train(model, sgd(model))
        if options.get("threshold"):
            assert all(torch.equal(each.to_local(), expected.state_dict()[name].chunk(dist.get_world_size())[dist.get_rank()])
                       for name, each in model.state_dict().items() if each.placements[0].is_shard())
        else:
            assert_shards(model, expected)
        offloads = "offload_policy" in options
        assert all(each.to_local().is_cpu == offloads and each.is_cpu == offloads for each in model.parameters()), options
        assert not offloads or all(each.to_local().is_pinned() for each in model.parameters() if each.to_local().numel())
    ragged = sharded(network(), mesh=mesh, layout="ragged")
    train(ragged, sgd(ragged))
    for name, found in ragged.state_dict().items():
        assert torch.equal(found.to_local(), found.part_of(expected.state_dict()[name])), name


@on("nccl", 1)
def options_of_one_rank_change_nothing_t13(folder):
    options_change_nothing(mesh_of("nccl"))


@on("gloo", 2)
def options_of_two_ranks_change_nothing_t13(folder):
    options_change_nothing(mesh_of("gloo"))


def a_stream_of_the_host(mesh):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model = sharded(network(), mesh=mesh)
        optimizer = sgd(model)
        for step in range(STEPS):
            torch.cuda._sleep(10_000_000)  # what follows on this stream comes late
            loss_of(model, batch(step, dist.get_rank()).cuda()).backward()
            torch.cuda._sleep(10_000_000)
            optimizer.step()
            optimizer.zero_grad()
    side.synchronize()
    assert_shards(model, trained_alone())


@on("nccl", 1)
def work_on_another_stream_is_waited_for(folder):
    a_stream_of_the_host(mesh_of("nccl"))


@on("gloo", 2)
def work_of_two_ranks_on_other_streams_is_waited_for_t33(folder):
    a_stream_of_the_host(mesh_of("gloo"))


def an_optimizer_on_its_own_stream(mesh):
    model = sharded(network(), mesh=mesh)
    optimizer, side = sgd(model), torch.cuda.Stream()
    for step in range(STEPS):
        loss_of(model, batch(step, dist.get_rank())).backward()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(10_000_000)
            optimizer.step()
        model.set_post_optim_event(side.record_event())
        optimizer.zero_grad(set_to_none=False)
    assert_shards(model, trained_alone())


@on("nccl", 1)
def events_of_an_optimizer_are_waited_for(folder):
    an_optimizer_on_its_own_stream(mesh_of("nccl"))


@on("gloo", 2)
def gradients_of_micro_batches_are_added(folder):
    mesh = mesh_of("gloo")
    expected = network().cuda()
    for flavour in ("set_requires_gradient_sync", "set_is_last_backward"):
        model = sharded(network(), mesh=mesh)
        total = None
        for number in range(2):
            getattr(model, flavour)(number == 1)
            loss_of(model, batch(0, dist.get_rank(), number)).backward()
            hsdp_sync_stream()
            for rank in range(2):
                total = add(total, torch.autograd.grad(loss_of(expected, batch(0, rank, number).cuda()),
                                                       list(expected.parameters())))
        for found, grad in zip(model.parameters(), total, strict=True):
            part = grad.mul(0.5).chunk(2)[dist.get_rank()]
            assert torch.allclose(found.grad.to_local(), part, rtol=1e-5, atol=1e-6), flavour
        total = None


class Scaled(nn.Module):
    """A layer and a buffer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(13, 8)
        self.register_buffer("scale", torch.full((8,), 2.0))

    def forward(self, x):
        return self.layer(x) * self.scale


@on("nccl", 1)
def norms_dtypes_and_buffers_are_those_of_plain_torch(folder):
    mesh, alone = mesh_of("nccl"), network().cuda()
    model = sharded(network(), mesh=mesh)
    loss_of(model, batch(0, 0)).backward()
    loss_of(alone, batch(0, 0).cuda()).backward()
    found = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    expected = nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
    assert torch.allclose(found.full_tensor(), expected, rtol=1e-6)
    scaled = Scaled()
    fully_shard(scaled, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                                                  output_dtype=torch.float32))
    out = scaled(batch(0, 0))
    assert out.is_cuda and out.dtype == torch.float32 and scaled.scale.is_cuda
    out.sum().backward()
    assert scaled.layer.weight.grad.dtype == torch.float32 and scaled.layer.weight.grad.is_cuda


# ---- checkpoints ----

def checkpoints_go_round(folder, mesh):
    def made(seed, **options):
        model = sharded(network(seed), mesh=mesh, **options)
        return model, torch.optim.AdamW(model.parameters(), lr=2.0 ** -6, foreach=False)

    model, optimizer = made(0)
    train(model, optimizer)
    shardwright.torch.save({"model": model, "optimizer": optimizer}, folder / "p")
    job = shardwright.torch.save_async({"model": model, "optimizer": optimizer}, folder / "async")
    train(model, optimizer, STEPS)  # while it is written
    job.result(60)
    for path in ("p", "async"):
        other, other_optimizer = made(1)
        train(other, other_optimizer)  # so that there is a state to fill
        shardwright.torch.load(folder / path, into={"model": other, "optimizer": other_optimizer})
        train(other, other_optimizer, STEPS)
        for name, found in other.state_dict().items():
            assert torch.equal(found.to_local(), model.state_dict()[name].to_local()), (path, name)
    offloaded, _ = made(2, offload_policy=CPUOffloadPolicy())
    shardwright.torch.load(folder / "p", into={"model": offloaded}, strict=False)
    whole = {f"model.{name}": torch.zeros(value.shape) for name, value in network().state_dict().items()}
    shardwright.torch.load(folder / "p", into=whole, strict=False)  # on the CPU
    for name, found in offloaded.state_dict().items():
        parts = whole[f"model.{name}"].chunk(dist.get_world_size())
        assert found.to_local().is_cpu and torch.equal(found.to_local(), parts[dist.get_rank()]), name
    offloaded.load_state_dict(network(3).state_dict(), assign=True)
    with torch.no_grad():
        assert torch.equal(offloaded(batch(0, 0)), network(3).cuda()(batch(0, 0).cuda()))


@on("nccl", 1)
def checkpoints_of_one_rank_go_round(folder):
    checkpoints_go_round(folder, mesh_of("nccl"))


@on("gloo", 2)
def checkpoints_of_two_ranks_go_round(folder):
    checkpoints_go_round(folder, mesh_of("gloo"))


# ---- several GPUs ----

@on("nccl", 2, 3, 4)
def ranks_train_over_nccl(folder):
    model = sharded(network(), mesh=mesh_of("nccl"), timeout=20.0)
    train(model, sgd(model))
    assert_shards(model, trained_alone(), exactly=False)
    model[2].register_full_backward_pre_hook(lambda *_: 1 / 0 if dist.get_rank() == 0 else None)
    try:
        loss_of(model, batch(0, 0)).backward()
        raise AssertionError("rank 0 has failed, and others went on")
    except (ZeroDivisionError, shardwright.ShardwrightError):  # NCCL tells nobody: they end with their time-out
        pass
    dist.barrier()
    model.reset_iter_state()  # makes communicators anew
    with torch.no_grad():
        model(batch(0, 0))


def main():
    folder, backend = Path(sys.argv[1]), sys.argv[2]
    torch.cuda.set_device(int(os.environ["RANK"]) if backend == "nccl" else 0)
    dist.init_process_group(backend)
    for of_backend, sizes, case in _cases:
        if of_backend != backend or (sizes and dist.get_world_size() not in sizes):
            continue
        place = folder / case.__name__
        place.mkdir(parents=True, exist_ok=True)
        try:
            case(place)
            outcome = "ok"
        except BaseException:
            outcome = traceback.format_exc(limit=-6)
        print(json.dumps({"case": case.__name__, "outcome": outcome}), flush=True)
        if outcome != "ok":  # the others may wait for this rank
            sys.exit(1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
