# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's way of reading, on tensors of torch: a file per rank that has saved, read whole by each rank that wants
something of it, cut, copied, and copied into its place."""
import os

from load_ranks.ranks_load import RanksLoad


class Contender(RanksLoad):
    def file_of(self, rank):
        return os.path.join(self.path, f"{rank}.pt")

    def save(self, state):
        os.makedirs(self.path, exist_ok=True)
        self.torch.save(self.locals_of(state), self.file_of(self.rank))
        self.dist.barrier()

    def load(self, target):
        """The files hold the rows of each rank in turn."""
        layout = self.params["layout"]
        for rank in [self.rank] if layout == "rows" else range(self.world):
            stored = self.torch.load(self.file_of(rank), weights_only=True)
            for name, local in self.locals_of(target).items():
                rows = stored[name]
                wanted = rows.chunk(self.world, 1)[self.rank] if layout == "columns" else rows
                place = local if layout == "rows" else local.narrow(0, rank * rows.shape[0], rows.shape[0])
                place.copy_(wanted.clone())
