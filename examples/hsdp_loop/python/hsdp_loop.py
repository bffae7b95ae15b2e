#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on two ranks, goes on from its checkpoint, and saves it: one of four programs, each in its language.

hsdp_loop.py FOLDER STEPS: trains so many steps from FOLDER/checkpoint, or from the beginning where there is none, saves there, and
prints the digest of all parameters. The programs of the other languages do the same by the same numbers, so each goes on from
what another has saved.
"""
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import shardwright
from shardwright.hsdp import Hsdp, Mesh, Param, thread_communicators
from shardwright.planning import content_digest

RANKS, MICRO_BATCHES, SAMPLES = 2, 2, 4
WIDTHS = (13, 37, 29, 3)
LAYERS = len(WIDTHS) - 1
RATE, MOMENTUM = np.float32(0.125), np.float32(0.9)


# ---- the numbers: exact in float32 ----

def first_weight(layer):
    n = np.arange(WIDTHS[layer + 1] * WIDTHS[layer])
    return (((n * 37 + layer * 11) % 41 - 20) / 128).astype(np.float32).reshape(WIDTHS[layer + 1], WIDTHS[layer])


def first_bias(layer):
    return (((np.arange(WIDTHS[layer + 1]) * 29 + layer * 7) % 31 - 15) / 256).astype(np.float32)


def inputs(step, micro_batch, rank):
    b, k = np.ogrid[:SAMPLES, :WIDTHS[0]]
    return (((step * 31 + micro_batch * 17 + rank * 13 + b * 7 + k * 5) % 23 - 11) / 16).astype(np.float32)


def targets(step, micro_batch, rank):
    b, k = np.ogrid[:SAMPLES, :WIDTHS[-1]]
    return (((step * 19 + micro_batch * 5 + rank * 3 + b * 11 + k * 13) % 17 - 8) / 16).astype(np.float32)


# ---- the arithmetic: each product and sum in float32, in this order ----

def affine(x, weight, bias):
    y = np.repeat(bias[None], len(x), axis=0)
    for k in range(x.shape[1]):
        y = y + x[:, k, None] * weight[None, :, k]
    return y


def weight_gradient(dy, x):
    grad = np.zeros((dy.shape[1], x.shape[1]), np.float32)
    for b in range(len(dy)):
        grad = grad + dy[b, :, None] * x[b, None, :]
    return grad


def bias_gradient(dy):
    grad = np.zeros(dy.shape[1], np.float32)
    for b in range(len(dy)):
        grad = grad + dy[b]
    return grad


def input_gradient(dy, weight):
    dx = np.zeros((len(dy), weight.shape[1]), np.float32)
    for j in range(dy.shape[1]):
        dx = dx + dy[:, j, None] * weight[None, j, :]
    return dx


def rectified(y):
    return np.where(y > 0, y, np.float32(0))


# ---- one rank ----

class Rank:
    """A unit per layer, and momenta cut as the parameters are."""

    def __init__(self, mesh, rank, **options):
        self.rank, self.hsdp, self.units = rank, Hsdp(mesh, **options), []
        for layer in range(LAYERS):
            unit = self.hsdp.unit(f"layers.{layer}")
            unit.add_params([Param(f"layers.{layer}.weight", first_weight(layer)), Param(f"layers.{layer}.bias", first_bias(layer))])
            unit.seal()  # from here on each rank holds its rows
            self.units.append(unit)
        self.momenta = [[np.zeros_like(unit.local(index).numpy()) for index in range(2)] for unit in self.units]

    def forward(self, x):
        """What goes into each layer, and what comes out before its activation."""
        seen, before = [x], []
        for layer, unit in enumerate(self.units):
            unit.pre_forward()  # the whole parameters are there
            before.append(affine(seen[-1], unit.full(0).numpy(), unit.full(1).numpy()))
            unit.post_forward()  # and gone
            seen.append(rectified(before[-1]) if layer + 1 < LAYERS else before[-1])
        return seen, before

    def backward(self, dy, seen, before):
        for layer in reversed(range(LAYERS)):
            unit = self.units[layer]
            if layer + 1 < LAYERS:
                dy = np.where(before[layer] > 0, dy, np.float32(0))
            unit.pre_backward()
            unit.add_grads([0, 1], [weight_gradient(dy, seen[layer]), bias_gradient(dy)])
            dy = input_gradient(dy, unit.full(0).numpy())
            unit.post_backward()  # travels while the layer before computes

    def step(self, step):
        for micro_batch in range(MICRO_BATCHES):
            is_last = micro_batch + 1 == MICRO_BATCHES
            # Replicas, where there are some, meet once.
            self.hsdp.set(is_last_backward=is_last, requires_all_reduce=is_last)
            seen, before = self.forward(inputs(step, micro_batch, self.rank))
            self.backward((seen[-1] - targets(step, micro_batch, self.rank)) * np.float32(0.25), seen, before)
            self.hsdp.finalize_backward()
        for unit, momenta in zip(self.units, self.momenta, strict=True):
            for index, momentum in enumerate(momenta):
                momentum[...] = MOMENTUM * momentum + unit.grad(index).numpy()
                local = unit.local(index).numpy()
                local[...] = local - RATE * momentum
        self.hsdp.step_event()  # the shards have changed
        self.hsdp.zero_grads()

    def whole(self):
        """All parameters, in their order."""
        found = []
        for unit in self.units:
            unit.unshard()
            found += [unit.full(index).numpy().copy() for index in range(2)]
            unit.reshard()
        return found


def digest(parameters):
    """Of little-endian float32."""
    return content_digest(b"".join(each.astype("<f4").tobytes() for each in parameters)).hex()


# ---- checkpoints ----

def tree_of(rank, step):
    """Momenta with the places that they have in the whole, and how many steps were trained. Parameters are the library's."""
    momenta = {}
    for layer, unit in enumerate(rank.units):
        for index, what in enumerate(("weight", "bias")):
            box = unit.box(index)
            momenta[f"layers.{layer}.{what}"] = shardwright.Shard(rank.momenta[layer][index], box.global_shape,
                                                                  boxes=((box.offsets, box.sizes),))
    return {"momentum": momenta, "step": step}


def state_of(rank, tree, writable):
    state = shardwright.State(tree, writable=writable, rank=rank.rank)
    rank.hsdp.add_to_state(state, "model.")
    return state


def run(rank, checkpoint, steps, collective):
    begin = 0
    if checkpoint.exists():
        tree = tree_of(rank, 0)
        shardwright.load(checkpoint, into=state_of(rank, tree, True), collective=collective)
        rank.hsdp.step_event()
        begin = tree["step"]
    for step in range(begin, begin + steps):
        rank.step(step)
    shardwright.save(state_of(rank, tree_of(rank, begin + steps), False), checkpoint, collective=collective)
    return digest(rank.whole())


def main(folder, steps):
    ends, collectives = thread_communicators(RANKS), shardwright.thread_collectives(RANKS)

    def thread(number):
        mesh = Mesh((RANKS,), rank=number)
        mesh.set_communicator(0, ends[number])
        rank = Rank(mesh, number)
        with rank.hsdp:
            return run(rank, Path(folder) / "checkpoint", int(steps), collectives[number])

    with ThreadPoolExecutor(RANKS) as threads:
        print(list(threads.map(thread, range(RANKS)))[0])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: hsdp_loop.py FOLDER STEPS")
    main(sys.argv[1], sys.argv[2])
