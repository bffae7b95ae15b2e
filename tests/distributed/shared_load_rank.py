# SPDX-License-Identifier: Apache-2.0
"""One rank of a load in which the process of one of them ends while others wait for what it reads.

Usage: shared_load_rank.py FOLDER PORT RANK WORLD VICTIM READ: rank VICTIM is killed before its READ-th large read.
"""
import datetime
import os
import signal
import sys
import time

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist

ROWS, COLUMNS = 6000, 4096
LARGE = 1 << 20


class File:
    def __init__(self, path, before_read):
        self.descriptor, self.before_read = os.open(path, os.O_RDONLY), before_read

    def read_at(self, offset, data):
        if len(data) >= LARGE:
            self.before_read()
        return os.preadv(self.descriptor, [data], offset)

    def abort(self):
        pass

    def close(self):
        os.close(self.descriptor)


class Folder:
    """A folder that can be read."""

    capabilities = shardwright.storage.Capability.CONCURRENT_READ

    def __init__(self, root, before_read):
        self.root, self.before_read = root, before_read

    def open(self, key, mode):
        assert mode == "read", mode
        return File(os.path.join(self.root, key), self.before_read)

    def stat(self, key):
        found = os.stat(os.path.join(self.root, key))
        return found.st_size, found.st_mtime_ns, str(found.st_mtime_ns)

    def list(self, prefix):
        return ()

    def remove(self, key):
        raise AssertionError("nothing is removed by a load")


def main():
    folder, port, rank, world, victim, read = sys.argv[1], *map(int, sys.argv[2:])
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=120))
    whole = torch.arange(ROWS * COLUMNS, dtype=torch.float32).reshape(ROWS, COLUMNS)
    shardwright.torch.save({"w": whole}, f"{folder}/p")
    reads = 0

    def before_read():
        nonlocal reads
        reads += 1
        if rank == victim and reads == read:
            os.kill(os.getpid(), signal.SIGKILL)

    state = {"w": torch.zeros(ROWS, COLUMNS)}
    begin = time.monotonic()
    try:
        report = shardwright.torch.load("p", into=state, storage=Folder(folder, before_read), threads=1)
        assert torch.equal(state["w"], whole)
        print(f"loaded {report.bytes_read}", flush=True)
    except shardwright.ShardwrightError as e:
        print(f"failed {type(e).__name__} {dict(e.details).get('ended_rank')} {time.monotonic() - begin:.1f}", flush=True)
    os._exit(0)  # a group with a dead rank cannot be taken apart


if __name__ == "__main__":
    main()
