#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of the demo: trains the transformer of examples/real_model and saves at the end. demo.py starts it.

ours:   under shardwright.torch.fully_shard, positions whole on each rank
fsdp2:  under torch's fully_shard
alone:  one process that takes the micro-batches of all ranks, and adds their gradients in the order of the sharded run

Rank 0 prints one JSON line per step, and one at the end.
"""
import argparse
import json
import resource
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard as fsdp2

import shardwright.torch
from shardwright.torch import fully_shard

sys.path.append(str(Path(__file__).resolve().parents[1] / "real_model"))
import corpus  # noqa: E402
from model import Config, Transformer, loss_of  # noqa: E402

SMALL = {"width": 64, "hidden": 189, "heads": 4, "layers": 2, "context": 32}


def sharded(model, kind, shape):
    """The model as units, one per block; (replicas, shards) or (shards,) ranks."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard")[-len(shape):])
    if kind == "fsdp2":
        for block in model.blocks:
            fsdp2(block, mesh=mesh)
        return fsdp2(model, mesh=mesh)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh, replicate_params={model.positions})


def add(left, right):
    return right if left is None else [a + b for a, b in zip(left, right, strict=True)]


def step_alone(model, batches, step, shape):
    """Gradients of all micro-batches: over the shards in rank order, then over the replicas, then scaled. The mean loss."""
    replicas, shards = shape if len(shape) == 2 else (1, shape[0])
    params, total, losses = list(model.parameters()), None, []
    for replica in range(replicas):
        of_shards = None
        for shard in range(shards):
            loss = loss_of(model, batches.at(step, replica * shards + shard, replicas * shards))
            losses.append(loss.item())
            of_shards = add(of_shards, torch.autograd.grad(loss, params))
        total = add(total, of_shards)
    for param, grad in zip(params, total, strict=True):
        param.grad = grad * (1.0 / (replicas * shards))
    return sum(losses) / len(losses)


def step_sharded(model, batches, step):
    """Forward and backward on this rank's micro-batch. The mean loss of all ranks."""
    loss = loss_of(model, batches.at(step, dist.get_rank(), dist.get_world_size()))
    loss.backward()
    mean = loss.detach() / dist.get_world_size()
    dist.all_reduce(mean)
    return mean.item()


def state_of(model, optimizer):
    weights, states = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": states}


def run(options, is_first):
    config = Config(**(SMALL if options.small else {}))
    shape = tuple(options.shape)
    world = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
    torch.manual_seed(0)
    model = Transformer(config)
    if options.kind != "alone":
        model = sharded(model, options.kind, shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if options.resume:
        state = state_of(model, optimizer)
        shardwright.torch.load(options.resume, into=state)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    batches = corpus.Batches(corpus.read_text(options.fallback), world, config.context)
    seconds = []
    for step in range(options.begin, options.begin + options.steps):
        begin = time.monotonic()
        loss = step_alone(model, batches, step, shape) if options.kind == "alone" else step_sharded(model, batches, step)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.monotonic() - begin)
        if is_first:
            print(json.dumps({"step": step, "loss": loss}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # before the save
    shardwright.torch.save(state_of(model, optimizer), options.save)
    if is_first:
        print(json.dumps({"seconds_per_step": sorted(seconds)[len(seconds) // 2], "peak_bytes": peak,
                          "parameters": sum(each.numel() for each in model.parameters())}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["ours", "fsdp2", "alone"])
    parser.add_argument("--shape", type=int, nargs="+", required=True, help="replicas and shards, or shards")
    parser.add_argument("--begin", type=int, default=0, help="number of the first step")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--resume", help="checkpoint to continue from")
    parser.add_argument("--save", required=True)
    parser.add_argument("--fallback", required=True, help="text to train on where the system has no licence texts")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.kind == "alone":
        run(options, True)
        return
    dist.init_process_group("gloo")
    run(options, dist.get_rank() == 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
