# SPDX-License-Identifier: Apache-2.0
"""One rank that wants an eighth of every tensor, as torch's load planners see it: a metadata of row shards, one list of
chunks for all tensors (a description each would be all that is measured), and a state of tensors that say by attributes
which rows they hold."""
from driver.contender import Base, Skip


class LoadPlan(Base):
    """create_local_plan of a load planner class."""

    def planner_class(self):
        raise NotImplementedError

    def setup(self):
        try:
            import torch
            from torch.distributed.checkpoint.metadata import (
                ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata)
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions = {"torch": torch.__version__}
        chunks, tensors = self.params["chunks"], self.params["tensors"]
        stored = TensorStorageMetadata(
            properties=TensorProperties(torch.uint8), size=torch.Size([8 * chunks, 64]),
            chunks=[ChunkStorageMetadata(torch.Size([8 * i, 0]), torch.Size([8, 64])) for i in range(chunks)])
        wanted = torch.empty((chunks, 64), dtype=torch.uint8)
        wanted.global_shape, wanted.global_offsets = (8 * chunks, 64), ((3 * chunks, 0),)
        wanted.local_offsets, wanted.local_sizes = ((0, 0),), ((chunks, 64),)
        names = [f"layers.{t}.weight" for t in range(tensors)]
        self.planner = self.planner_class()()
        self.planner.set_up_planner(dict.fromkeys(names, wanted), Metadata(dict.fromkeys(names, stored)), True)

    def prepare(self):
        self.items = self.found = None  # the last ones are not dropped in the timing

    def run(self):
        self.items = self.planner.create_local_plan().items
        self.found = self.items[0]  # a plan that is made when it is looked at is looked at here
        return {"reads": len(self.items)}

    def check(self):
        return len(list(self.items)) == self.params["tensors"] * self.params["chunks"] // 8
