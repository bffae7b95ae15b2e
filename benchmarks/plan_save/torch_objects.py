# SPDX-License-Identifier: Apache-2.0
"""Plans of many ranks as torch's dataclasses, for the contenders that go through torch's planner classes.

Of the items of a rank four fifths are its row of a tensor that all ranks share, one fifth are replicas that all hold.
"""
import io
import pickle

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
    """The global step of a planner class. `given` says what a rank's plan is when the step begins."""

    def planner_class(self):
        raise NotImplementedError

    def setup(self):
        try:
            import torch
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions = {"torch": torch.__version__}
        ranks, count = self.params["ranks"], self.params["items_per_rank"]
        self.plans = []
        for rank in range(ranks):
            items = rank_items(rank, ranks, count)
            self.plans.append(self.given(items, {i.index.fqn: (i.index.fqn,) for i in items}))

    def given(self, items, paths):
        from torch.distributed.checkpoint.planner import SavePlan
        return SavePlan(items, planner_data=paths)

    def prepare(self):
        self.final = self.metadata = None
        self.planner = self.planner_class()()  # one that keeps the last plan would drop it in the timing

    def run(self):
        self.final, self.metadata = self.planner.create_global_plan(self.plans)

    def check(self):
        ranks, count = self.params["ranks"], self.params["items_per_rank"]
        if self.final is None:
            self.prepare()
            self.run()
        own = count - count // 5
        found = self.metadata.state_dict_metadata
        return (sum(len(plan.items) for plan in self.final) == ranks * own + count // 5 and len(found) == count
                and len(found["model.layers.0.weight"].chunks) == ranks)


class SentStep(GlobalStep):
    """The step between the two collectives of a save on the coordinator: what was gathered is unpickled, planned, given to
    torch's own file writer, and pickled for each rank."""

    def given(self, items, paths):
        return pickle.dumps(super().given(items, paths))

    def setup(self):
        super().setup()
        from torch.distributed.checkpoint import FileSystemWriter
        self.writer = FileSystemWriter(self.directory)

    def prepare(self):
        super().prepare()
        self.sent = None

    def run(self):
        final, self.metadata = self.planner.create_global_plan([pickle.loads(plan) for plan in self.plans])
        self.final = self.writer.prepare_global_plan(final)
        self.sent = [pickle.dumps(plan) for plan in self.final]

    def check(self):
        return super().check() and pickle.loads(self.sent[1]) == self.final[1]


class Index(GlobalStep):
    """The index of a save: the metadata of the global step, with the places of all chunks, as torch's writer pickles it."""

    def prepare(self):
        from torch.distributed.checkpoint.filesystem import _StorageInfo
        from torch.distributed.checkpoint.metadata import MetadataIndex
        super().prepare()
        GlobalStep.run(self)
        if not hasattr(self, "places"):
            _, self.metadata = self.planner.create_global_plan(self.plans)
            self.places = {MetadataIndex(name, chunk.offsets, number): _StorageInfo("__0_0.distcp", number, 16)
                           for name, entry in self.metadata.state_dict_metadata.items()
                           for number, chunk in enumerate(entry.chunks)}
            _, self.metadata = self.planner.create_global_plan(self.plans)
        self.metadata.storage_data = self.places

    def run(self):
        self.written = io.BytesIO()
        pickle.dump(self.metadata, self.written)

    def check(self):
        if not hasattr(self, "written"):
            return True
        found = pickle.loads(self.written.getvalue())
        return found == self.metadata and type(found.state_dict_metadata) is dict
