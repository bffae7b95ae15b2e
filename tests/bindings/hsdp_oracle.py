#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What hsdp.json expects: one process that takes the micro-batches of all ranks and adds in the order that the library promises.

hsdp_oracle.py: writes hsdp.json anew. The numbers and the arithmetic are those of examples/hsdp_loop; nothing of the library that
trains is used.
"""
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("hsdp.json")
WORLDS, STEPS = ((2, 1), (3, 1), (2, 2)), 20
sys.path.insert(0, str(ROOT / "examples" / "hsdp_loop" / "python"))
import hsdp_loop as loop  # noqa: E402


def gradients(parameters, x, target):
    seen, before = [x], []
    for layer in range(loop.LAYERS):
        before.append(loop.affine(seen[-1], *parameters[2 * layer:2 * layer + 2]))
        seen.append(loop.rectified(before[-1]) if layer + 1 < loop.LAYERS else before[-1])
    dy, made = (seen[-1] - target) * np.float32(0.25), []
    for layer in reversed(range(loop.LAYERS)):
        if layer + 1 < loop.LAYERS:
            dy = np.where(before[layer] > 0, dy, np.float32(0))
        made[:0] = [loop.weight_gradient(dy, seen[layer]), loop.bias_gradient(dy)]
        dy = loop.input_gradient(dy, parameters[2 * layer])
    return made


def added(left, right):
    return right if left is None else [a + b for a, b in zip(left, right, strict=True)]


def over_shards(parameters, step, micro_batch, replica, shards):
    """The sum over the ranks of a replica, in rank order."""
    total = None
    for rank in range(replica * shards, (replica + 1) * shards):
        total = added(total, gradients(parameters, loop.inputs(step, micro_batch, rank), loop.targets(step, micro_batch, rank)))
    return total


def step_gradients(parameters, step, shards, replicas):
    """Without replicas each micro-batch is scaled, then added; with them sums wait unscaled until the replicas meet."""
    share, total = np.float32(1.0 / (shards * replicas)), None
    for replica in range(replicas):
        of_replica = None
        for micro_batch in range(loop.MICRO_BATCHES):
            made = over_shards(parameters, step, micro_batch, replica, shards)
            of_replica = added(of_replica, made if replicas > 1 else [each * share for each in made])
        total = added(total, of_replica)
    return total if replicas == 1 else [each * share for each in total]


def digests(shards, replicas):
    parameters = [make(layer) for layer in range(loop.LAYERS) for make in (loop.first_weight, loop.first_bias)]
    momenta = [np.zeros_like(each) for each in parameters]
    found = []
    for step in range(STEPS):
        for n, grad in enumerate(step_gradients(parameters, step, shards, replicas)):
            momenta[n] = loop.MOMENTUM * momenta[n] + grad
            parameters[n] = parameters[n] - loop.RATE * momenta[n]
        found.append(loop.digest(parameters))
    return found


def document():
    return {"comment": "One loop in every language: docs/hsdp.md. Digests of all parameters after each step, made by hsdp_oracle.py.",
            "worlds": [{"shards": shards, "replicas": replicas, "digests": digests(shards, replicas)} for shards, replicas in WORLDS]}


if __name__ == "__main__":
    FILE.write_text(json.dumps(document(), indent=1) + "\n", encoding="utf-8")
