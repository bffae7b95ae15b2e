# SPDX-License-Identifier: Apache-2.0
"""Contenders of several ranks: processes on this machine that meet over Gloo, as a job of torchrun does.

Their states are tensors of torch.distributed.tensor. The whole state is the same for every contender and world size: each
rank makes it from the same numbers and keeps its part, so that any layout can be checked without asking another rank.
"""
import datetime
import os
import time

from driver import states
from driver.contender import Base, Skip

MEET_SECONDS = 300
PORT_FILE = "port"


def _port_of_rank_zero(directory):
    until = time.monotonic() + MEET_SECONDS
    path = os.path.join(directory, PORT_FILE)
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise RuntimeError(f"rank 0 did not open its store within {MEET_SECONDS} s")
        time.sleep(0.02)
    with open(path, encoding="ascii") as f:
        return int(f.read())


class RanksContender(Base):
    """A rank of a contender. params: world, rank, bytes, tensors; `layout` of the state is rows, columns or replicated."""

    def setup(self):
        try:
            import torch
            import torch.distributed as dist
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        torch.set_num_threads(1)
        self.torch, self.dist = torch, dist
        self.versions = {"torch": torch.__version__}
        self.rank, self.world = self.params["rank"], self.params["world"]
        limit = datetime.timedelta(seconds=MEET_SECONDS)
        port = 0 if self.rank == 0 else _port_of_rank_zero(self.directory)
        store = dist.TCPStore("127.0.0.1", port, self.world, is_master=self.rank == 0, timeout=limit,
                              wait_for_workers=False)
        if self.rank == 0:
            path = os.path.join(self.directory, PORT_FILE)
            with open(path + ".new", "w", encoding="ascii") as f:
                f.write(str(store.port))
            os.rename(path + ".new", path)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world, timeout=limit)
        self.mesh = dist.device_mesh.init_device_mesh("cpu", (self.world,))

    def meet(self):
        self.dist.barrier()

    def settle(self):
        self.dist.barrier()  # a rank that is done does not drop caches or folders under another one

    def state(self, layout):
        """Name -> DTensor with this rank's part of the state."""
        from torch.distributed.tensor import DTensor, Replicate, Shard
        placement = {"rows": Shard(0), "columns": Shard(1), "replicated": Replicate()}[layout]
        count, columns = self.params["tensors"], self.params["columns"]
        rows = self.params["bytes"] // count // 4 // columns
        made = {}
        for name, whole in states.each_array({"bytes": rows * columns * 4 * count, "tensors": count}):
            whole = self.torch.from_numpy(whole.reshape(rows, columns))
            part = whole if layout == "replicated" else whole.chunk(self.world, placement.dim)[self.rank]
            made[name] = DTensor.from_local(part.clone(memory_format=self.torch.contiguous_format), self.mesh, [placement],
                                            run_check=False, shape=whole.shape, stride=whole.stride())
        return made

    @staticmethod
    def locals_of(state):
        return {name: tensor.to_local() for name, tensor in state.items()}

    def digests(self, state):
        return states.tensor_digests(self.locals_of(state))

    def bytes_needed(self, state):
        """What this rank holds of it."""
        return sum(tensor.nbytes for tensor in self.locals_of(state).values())

    def wipe(self, state):
        for tensor in self.locals_of(state).values():
            tensor.fill_(1)
