# SPDX-License-Identifier: Apache-2.0
"""What one rank of the demo runs; the driver starts it with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.

first:  trains, saves, trains on (the uninterrupted run), then overwrites the checkpoint: the driver kills that save.
resume: loads the checkpoint on another mesh, proves it bitwise, and trains on.
Rank 0 prints one JSON event per line.
"""
import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist

import corpus
import shardwright.torch
from trainer import Trainer, digests_in_memory, shard_shapes


def emit(event, **fields):
    if dist.get_rank() == 0:
        print(json.dumps({"event": event} | fields), flush=True)


def train(trainer, steps):
    for _ in range(steps):
        start = time.monotonic()
        loss = trainer.step()
        emit("step", step=trainer.step_number, loss=loss, seconds=time.monotonic() - start)


def describe(trainer, state):
    """Sizes and the unevenly sharded parameters, for the table."""
    shapes = shard_shapes(state["model"])
    uneven = sorted(n for n, (whole, _) in shapes.items() if whole[0] % trainer.mesh.shape[-1])
    weights = sum(p.numel() for p in trainer.model.parameters())
    emit("model", parameters=weights, uneven=len(uneven), example=uneven[0] if uneven else "",
         left_out=[n for n, p in trainer.model.named_parameters() if any(p is q for q in trainer.left_out)])


def save(trainer, path, event, waits=False):
    """waits: for a line from the driver, which then sees the save from its first byte on."""
    trainer.check_left_out_equal()
    state = trainer.state()
    emit(event + "_begins")
    if waits and dist.get_rank() == 0:
        sys.stdin.readline()
    dist.barrier()
    start = time.monotonic()
    report = shardwright.torch.save(state, path, metadata={"step": str(trainer.step_number)})
    emit(event, seconds=time.monotonic() - start, bytes=report.bytes_total, step=trainer.step_number)
    return state


def run_first(options):
    trainer = Trainer((2, 2), corpus.read_text(options.fallback))
    describe(trainer, trainer.state())
    train(trainer, options.steps)
    state = save(trainer, options.checkpoint, "saved")
    digests = digests_in_memory(state)
    if dist.get_rank() == 0:
        with open(options.digests, "w", encoding="utf-8") as f:
            json.dump(digests, f)
        slice_of = "model.positions"
        rows = dict(state["model"])["positions"].detach()[2:4, 0:4].contiguous()
        emit("memory", tensors=len(digests), slice_name=slice_of, slice_hex=rows.view(torch.uint8).numpy().tobytes().hex())
    train(trainer, options.more_steps)
    save(trainer, options.checkpoint, "overwrite", waits=True)


def run_resume(options):
    trainer = Trainer((dist.get_world_size(),), corpus.read_text(options.fallback))
    state = trainer.state()
    dist.barrier()
    start = time.monotonic()
    report = shardwright.torch.load(options.checkpoint, into=state)
    seconds = time.monotonic() - start
    trainer.take(state)
    emit("loaded", seconds=seconds, bytes_read=report.bytes_read, over_read=report.bytes_over_read,
         missing=len(report.missing), unexpected=len(report.unexpected), step=trainer.step_number)
    with open(options.digests, encoding="utf-8") as f:
        expected = json.load(f)
    found = digests_in_memory(trainer.state())
    if dist.get_rank() == 0 and found != expected:
        wrong = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
        raise RuntimeError(f"{len(wrong)} tensors differ after the load, first {wrong[:3]}")
    emit("proved", tensors=len(found))
    train(trainer, options.more_steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["first", "resume"])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--digests", required=True)
    parser.add_argument("--fallback", required=True, help="text to train on where the system has no licence texts")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--more-steps", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    try:
        (run_first if options.mode == "first" else run_resume)(options)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
