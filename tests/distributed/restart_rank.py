# SPDX-License-Identifier: Apache-2.0
"""One rank around an elastic restart: `survivor` goes through both worlds, `gone` and `new` through one each.

Usage: restart_rank.py ROLE FOLDER FIRST_PORT SECOND_PORT
"""
import datetime
import sys

import shardwright.torch
import torch
import torch.distributed as dist


def join(port, rank):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=60))


def first_world(folder, port, rank):
    join(port, rank)
    for _ in range(3):
        shardwright.torch.save({"w": torch.ones(4)}, f"{folder}/p")
    dist.destroy_process_group()


def second_world(folder, port, rank):
    join(port, rank)
    end = shardwright.torch.collective()
    if rank == 0:
        end.abort("the survivor stops")
    else:
        try:
            end.barrier()
        except shardwright.AbortedError as e:
            assert "the survivor stops" in str(e)
            print("told", flush=True)
    shardwright.torch.save({"w": torch.zeros(4)}, f"{folder}/p")
    dist.destroy_process_group()


def main():
    role, folder, first_port, second_port = sys.argv[1:]
    rank = 0 if role == "survivor" else 1
    if role != "new":
        first_world(folder, first_port, rank)
    if role != "gone":
        second_world(folder, second_port, rank)


if __name__ == "__main__":
    main()
