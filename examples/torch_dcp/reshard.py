#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sharded model is saved by torch's own save on four processes and loaded on two, with shardwright's planners.

    python examples/torch_dcp/reshard.py FOLDER

Prints what the coordinator got from the ranks, and what the load found.
"""
import multiprocessing
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from shardwright.torch.dcp.planner import DefaultLoadPlanner, DefaultSavePlanner

LAYERS = 50


def weights(start):
    return {f"layers.{i}.weight": torch.arange(64.0).reshape(8, 8) * start + i for i in range(LAYERS)}


class Counting(DefaultSavePlanner):
    """Says what the coordinator gets from the ranks."""

    def create_global_plan(self, all_plans):
        sizes = [len(plan.items.plan) for plan in all_plans]  # nobody has looked into them: they are plan buffers
        print(f"{sum(len(plan.items) for plan in all_plans)} items of {len(sizes)} ranks came in {sum(sizes)} bytes", flush=True)
        return super().create_global_plan(all_plans)


def save(rank, size, store, folder):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    state = {"model": {name: distribute_tensor(value, mesh, [Shard(0)]) for name, value in weights(1).items()}, "step": 12}
    dcp.save(state, checkpoint_id=folder, planner=Counting())
    dist.destroy_process_group()


def load(rank, size, store, folder):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    state = {"model": {name: distribute_tensor(value, mesh, [Shard(1)]) for name, value in weights(0).items()}, "step": 0}
    planner = DefaultLoadPlanner()
    dcp.load(state, checkpoint_id=folder, planner=planner)
    right = all(torch.equal(state["model"][name].full_tensor(), value) for name, value in weights(1).items())
    if rank == 0:
        print(f"loaded on {size} ranks: step {state['step']}, weights {'equal' if right else 'DIFFER'}, "
              f"unexpected {planner.unexpected_keys}, casts {planner.casts}", flush=True)
    dist.destroy_process_group()
    sys.exit(0 if right and state["step"] == 12 else 1)


def run(function, size, folder):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch.distributed.checkpoint", "torch.distributed.tensor"])  # imported once for all
    processes = [context.Process(target=function, args=(rank, size, f"{folder}.{function.__name__}", folder))
                 for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return max(abs(process.exitcode) for process in processes)


if __name__ == "__main__":
    torch.set_num_threads(1)
    target = os.path.abspath(sys.argv[1])
    sys.exit(run(save, 4, target) or run(load, 2, target))
