# SPDX-License-Identifier: Apache-2.0
"""A rank of a group that has NCCL alone: by the plugin straight over NCCL, which is given up at the end, and by
shardwright.torch, which has Gloo made."""
import json
import sys

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist


def give_up(rank, size):
    """A rank that fails ends the group for all; what the others have pending on their devices does not stay there."""
    end = shardwright.PluginCollective("torch", json.dumps({"group": dist.group.WORLD.group_name, "use": "given up"}))
    if rank == size - 1:
        end.abort("it has failed")
    else:
        try:
            end.all_gather(b"x" * 1000)
            raise AssertionError("a rank has failed, and nobody was told")
        except shardwright.ShardwrightError as e:
            assert "it has failed" in str(e), e
    end.close()
    torch.cuda.synchronize()


def main():
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    shardwright.context.shared().load_plugin("torch")
    end = shardwright.PluginCollective("torch", json.dumps({"group": dist.group.WORLD.group_name, "use": "direct"}))
    everyone = range(size)
    end.barrier()
    assert end.broadcast(bytes([rank]) * 1000, size - 1) == bytes([size - 1]) * 1000
    assert end.all_gather(bytes([rank]) * 1000) == b"".join(bytes([r]) * 1000 for r in everyone)
    assert end.all_gather(b"x" * (rank + 600), [r + 600 for r in everyone]) == b"x" * sum(r + 600 for r in everyone)
    parts = [bytes([rank * 16 + to]) * (to + 1) for to in everyone]
    assert end.all_to_all(parts, [rank + 1] * size) == [bytes([r * 16 + rank]) * (rank + 1) for r in everyone]
    gathered = end.gather(b"y" * rank, list(everyone) if rank == 0 else None)
    assert gathered == (b"y" * sum(everyone) if rank == 0 else b"")
    assert end.scatter([b"z" * (r + 1) for r in everyone] if rank == 0 else [], rank + 1) == b"z" * (rank + 1)
    assert end.all_reduce_i64(list(range(64)), "sum") == tuple(size * value for value in range(64))
    end.close()
    if size > 1:
        give_up(rank, size)
    report = shardwright.torch.save({"w": torch.ones(4, device="cuda")}, f"{sys.argv[1]}/p")
    print(json.dumps({"case": "nccl", "outcome": report.collective}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
