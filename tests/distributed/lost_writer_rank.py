# SPDX-License-Identifier: Apache-2.0
"""One rank of a save in Megatron's layout in which a process dies while it writes: its tensor lies in a file that has become shorter, so
the kernel kills whoever reads the end of it. The others print how theirs ended, and when.

Usage: lost_writer_rank.py FOLDER HOW VICTIM
"""
import datetime
import json
import os
import resource
import sys
import time
from pathlib import Path

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
from shardwright.torch import megatron

ROWS = 1 << 20


def state(rank, world, local):
    return {"w": megatron.ShardedTensor.from_rank_offsets("w", local, (0, rank, world)), "iteration": 7}


def half_gone(path):
    """A tensor whose second half cannot be read."""
    path.write_bytes(bytes(4 * ROWS))
    local = torch.from_file(str(path), shared=True, size=ROWS, dtype=torch.float32)
    os.truncate(path, 2 * ROWS)
    return local


def save_now(path, tree):
    megatron.save(tree, path)


def save_in_background(path, tree):
    queue = megatron.AsyncCallsQueue()
    queue.schedule_async_request(megatron.save(tree, path, async_sharded_save=True))
    queue.maybe_finalize_async_calls(blocking=True)


def save_format(path, tree):
    leaf = tree["w"]
    shards = {"w": shardwright.Shard(leaf.data, leaf.global_shape, ((leaf.global_offset, leaf.local_shape),)), "common": {"iteration": 7}}
    shardwright.torch.save(shards, path, format="megatron")


HOW = {"now": save_now, "background": save_in_background, "format": save_format}


def main():
    path, save, victim = Path(sys.argv[1]) / "c", HOW[sys.argv[2]], int(sys.argv[3])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank, world = dist.get_rank(), dist.get_world_size()
    path.mkdir(exist_ok=True)
    dist.barrier()
    save(str(path), state(rank, world, torch.full((ROWS,), 1.0)))
    second = state(rank, world, half_gone(path.with_name("memory")) if rank == victim else torch.full((ROWS,), 2.0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dist.barrier()
    said = {"begin": time.monotonic()}
    if rank == victim:
        print(json.dumps({"case": "lost", "outcome": said}), flush=True)
    try:
        save(str(path), second)
    except Exception as e:
        said |= {"seconds": time.monotonic() - said["begin"], "kind": type(e).__name__, "text": str(e),
                 "is_ours": isinstance(e, shardwright.ShardwrightError)}
    if rank != victim:
        print(json.dumps({"case": "lost", "outcome": said}), flush=True)
    os._exit(0)  # torch's own group waits for the rank that is gone


if __name__ == "__main__":
    main()
