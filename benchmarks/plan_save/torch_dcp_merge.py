# SPDX-License-Identifier: Apache-2.0
"""torch's global step (deduplication, global plan, validation) on plans of all ranks that are Python objects already."""
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
            from torch.distributed.checkpoint import default_planner, metadata, planner
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions = {"torch": torch.__version__}
        ranks, items = self.params["ranks"], self.params["items"]
        properties = metadata.TensorProperties.create_from_tensor(torch.empty(8, 8))

        def item(i, rank):
            name, sharded = f"model.layers.{i}.attention.weight", i % 2 == 0
            offsets = torch.Size((8 * rank if sharded else 0, 0))
            chunk = metadata.ChunkStorageMetadata(offsets, torch.Size((8, 8)))
            data = planner.TensorWriteData(chunk, properties, torch.Size((8 * ranks if sharded else 8, 8)))
            kind = planner.WriteItemType.SHARD if sharded else planner.WriteItemType.TENSOR
            return planner.WriteItem(metadata.MetadataIndex(name, offsets), kind, tensor_data=data)

        self.plans = [planner.SavePlan([item(i, r) for i in range(items)], planner_data={}) for r in range(ranks)]
        self.planner = default_planner.DefaultSavePlanner()

    def prepare(self):
        self.result = self.metadata = None  # the last result is not dropped in the timing

    def run(self):
        self.result, self.metadata = self.planner.create_global_plan(self.plans)

    def check(self):
        ranks, items = self.params["ranks"], self.params["items"]
        return sum(len(plan.items) for plan in self.result) == (items + 1) // 2 * ranks + items // 2
