# SPDX-License-Identifier: Apache-2.0
"""Plans of many ranks as torch's dataclasses, for the contenders that go through torch's planner classes.

Of the items of a rank four fifths are its row of a tensor that all ranks share, one fifth are replicas that all hold.
"""
import gc

from driver.contender import Base, Skip


def rank_items(rank, ranks, count):
    import torch
    from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
    from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
    items = []
    for number in range(count):
        own = number % 5 != 4
        shape = torch.Size([4 * ranks, 64] if own else [64])
        offset = torch.Size([4 * rank, 0] if own else [0])
        size = torch.Size([4, 64] if own else [64])
        items.append(WriteItem(
            MetadataIndex(f"model.layers.{number}.weight", offset), WriteItemType.SHARD if own else WriteItemType.TENSOR,
            tensor_data=TensorWriteData(ChunkStorageMetadata(offset, size),
                                        TensorProperties(torch.float32, strides=(64, 1) if own else (1,)), shape)))
    return items


class GlobalStep(Base):
    """The global step of a planner class. `keep_buffers`: plans arrive as plan buffers, as they do inside torch's save."""

    keep_buffers = False

    def planner_class(self):
        raise NotImplementedError

    def setup(self):
        try:
            import torch
            from torch.distributed.checkpoint.planner import SavePlan
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions = {"torch": torch.__version__}
        self.planner = self.planner_class()()
        ranks, count = self.params["ranks"], self.params["items_per_rank"]
        gc.disable()  # while the input is made
        self.plans = []
        for rank in range(ranks):
            items = rank_items(rank, ranks, count)
            self.plans.append(SavePlan(self.given(items), planner_data={i.index.fqn: (i.index.fqn,) for i in items}))
        gc.enable()
        gc.collect()
        gc.freeze()  # a planner that makes objects pays for collections of its own objects, not of the input

    def given(self, items):
        return items

    def prepare(self):
        self.final = self.metadata = None
        gc.collect()

    def run(self):
        self.final, self.metadata = self.planner.create_global_plan(self.plans)

    def check(self):
        ranks, count = self.params["ranks"], self.params["items_per_rank"]
        if self.final is None:
            self.run()
        own = count - count // 5
        found = self.metadata.state_dict_metadata
        return (sum(len(plan.items) for plan in self.final) == ranks * own + count // 5 and len(found) == count
                and len(found["model.layers.0.weight"].chunks) == ranks)
