# SPDX-License-Identifier: Apache-2.0
"""torch's reads for the same row shards: create_read_items_for_chunk_list once per tensor, one description of the stored
chunks for all of them, because a million descriptions would be all that is measured.
"""
from driver.contender import Base, Skip


class Contender(Base):
    def reads_function(self):
        from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
        return create_read_items_for_chunk_list

    def setup(self):
        try:
            import torch
            from torch.distributed.checkpoint.metadata import (
                ChunkStorageMetadata, TensorProperties, TensorStorageMetadata)
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions, self.create = {"torch": torch.__version__}, self.reads_function()
        chunks = self.params["chunks"]

        def chunk(row, rows):
            return ChunkStorageMetadata(offsets=torch.Size([row, 0]), sizes=torch.Size([rows, 64]))

        self.stored = TensorStorageMetadata(properties=TensorProperties(), size=torch.Size([8 * chunks, 64]),
                                            chunks=[chunk(8 * i, 8) for i in range(chunks)])
        self.wanted = [chunk(3 * chunks, chunks)]

    def prepare(self):
        self.items = None  # the last ones are not dropped in the timing

    def run(self):
        self.items = []
        for t in range(self.params["tensors"]):
            self.items += self.create(f"layers.{t}.weight", self.stored, self.wanted)
        return {"reads": len(self.items)}

    def check(self):
        return len(self.items) == self.params["tensors"] * self.params["chunks"] // 8
