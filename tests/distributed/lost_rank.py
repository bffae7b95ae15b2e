# SPDX-License-Identifier: Apache-2.0
"""One rank of a group in which a process is killed between two operations. The others print how theirs ended.

Usage: lost_rank.py FOLDER VICTIM
"""
import datetime
import json
import os
import signal
import sys

import shardwright
import shardwright.torch
import torch.distributed as dist


def main():
    victim = int(sys.argv[2])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank, end = dist.get_rank(), shardwright.torch.collective()
    for _ in range(3):
        end.all_gather(b"x" * 1000)
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            end.all_gather(b"x" * 1000)
    except shardwright.ShardwrightError as e:
        told = {"kind": type(e).__name__, "rank": e.details.get("rank"), "text": str(e)}
        print(json.dumps({"case": "lost", "outcome": told}), flush=True)
    if victim != 0:  # rank 0 holds the store, so it goes last
        store = dist.distributed_c10d._get_default_store()
        if rank == 0:
            store.wait([f"told/{other}" for other in range(1, dist.get_world_size()) if other != victim])
        else:
            store.set(f"told/{rank}", "")
    os._exit(0)  # torch's own group waits for the rank that is gone


if __name__ == "__main__":
    main()
