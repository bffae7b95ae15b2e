# SPDX-License-Identifier: Apache-2.0
"""One rank of a load whose ranks are played on machines of their own: what several want is read once and sent on.

Usage: exchange_rank.py FOLDER PORT RANK WORLD EXCHANGE
"""
import datetime
import os
import sys

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist

ROWS, COLUMNS, REPLICA = 2048, 4096, 1 << 21
PAYLOAD = 4 * (ROWS * COLUMNS + REPLICA)


def main():
    folder, (port, rank, world), exchange = sys.argv[1], map(int, sys.argv[2:5]), sys.argv[5]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=120))
    whole = torch.arange(ROWS * COLUMNS, dtype=torch.float32).reshape(ROWS, COLUMNS)
    replica = -torch.arange(REPLICA, dtype=torch.float32)
    rows, width = ROWS // world, COLUMNS // world
    mine = shardwright.Shard(whole[rank * rows:(rank + 1) * rows].contiguous(), (ROWS, COLUMNS),
                             boxes=(((rank * rows, 0), (rows, COLUMNS)),))
    shardwright.torch.save({"w": mine, "r": replica}, f"{folder}/p")
    columns, copy = torch.zeros(ROWS, width), torch.zeros(REPLICA)
    into = {"w": shardwright.Shard(columns, (ROWS, COLUMNS), boxes=(((0, rank * width), (ROWS, width)),)), "r": copy}
    with shardwright.Context(machine=f"machine {rank}") as context:
        report = shardwright.torch.load(f"{folder}/p", into=into, exchange=exchange, context=context)
    assert torch.equal(columns, whole[:, rank * width:(rank + 1) * width]) and torch.equal(copy, replica)
    again = [None] * world
    dist.all_gather_object(again, columns)
    shardwright.save({"w": torch.cat(again, 1), "r": copy}, f"{folder}/again-{rank}")
    digests = []
    for path in ("p", f"again-{rank}"):
        with shardwright.open(os.path.join(folder, path)) as checkpoint:
            digests.append({name: str(checkpoint[name].digest()) for name in ("w", "r")})
    assert digests[0] == digests[1], digests
    print(report.bytes_read, report.bytes_received, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
