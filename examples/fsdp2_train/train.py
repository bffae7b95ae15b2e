#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small model under FSDP2 and saves in the background every few steps; goes on from the newest whole checkpoint, on
however many processes it is started.

    python examples/fsdp2_train/demo.py FOLDER            # 2 processes, killed; 3 go on; compared with a run in one go
    torchrun --nproc-per-node 2 examples/fsdp2_train/train.py --folder FOLDER --steps 12

The checkpoint lines are those of a script for torch.distributed.checkpoint, with one import changed.
"""
import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

import shardwright.torch.dcp as dcp  # was: import torch.distributed.checkpoint as dcp

EVERY = 4
SAMPLES = 24


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(10, 10) for _ in range(3)])
        self.head = torch.nn.Linear(10, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


class Data:
    """Batches by number; where it stands is part of the checkpoint."""

    def __init__(self):
        self.position = 0

    def next(self):
        generator = torch.Generator().manual_seed(self.position)
        self.position += 1
        x = torch.randn(SAMPLES, 10, generator=generator, dtype=torch.float64)
        share = slice(dist.get_rank(), None, dist.get_world_size())
        return x[share], x.sum(1, keepdim=True)[share]

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


def built():
    torch.manual_seed(0)
    net = Net().double()
    for layer in net.layers:
        fully_shard(layer)
    fully_shard(net)
    return net, torch.optim.AdamW(net.parameters(), lr=0.01)


def state_of(net, optimizer, data):
    model, states = get_state_dict(net, optimizer)
    return {"model": model, "optimizer": states, "data": data}


def resume(folder, net, optimizer, data):
    """The newest step whose save was completed; a save that was killed leaves none."""
    done = sorted(path for path in Path(folder).glob("step-*") if (path / ".metadata").exists())
    if not done:
        return
    state = state_of(net, optimizer, data)
    dcp.load(state, checkpoint_id=done[-1])
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    if dist.get_rank() == 0:
        print(f"resumed {done[-1].name} on {dist.get_world_size()} ranks", flush=True)


def train(folder, steps, kill_at):
    net, optimizer = built()
    data = Data()
    resume(folder, net, optimizer, data)
    saving = None
    while data.position < steps:
        x, y = data.next()
        # Each rank has its share of the samples, so that the loss is that of all of them on any number of ranks.
        loss = ((net(x) - y) ** 2).sum() * dist.get_world_size() / SAMPLES
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach() / dist.get_world_size()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"step {data.position} loss {total.item():.9f}", flush=True)
        if data.position % EVERY == 0:
            saving = dcp.async_save(state_of(net, optimizer, data), checkpoint_id=f"{folder}/step-{data.position:08}")
        if data.position == kill_at:
            saving.result()
            os.kill(os.getpid(), 9)
    if saving is not None:
        saving.result()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--kill-at", type=int, default=-1, help="step after which all processes are killed")
    given = parser.parse_args()
    dist.init_process_group("gloo")
    train(given.folder, given.steps, given.kill_at)
    dist.destroy_process_group()
