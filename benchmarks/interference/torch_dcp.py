# SPDX-License-Identifier: Apache-2.0
"""torch DCP's async_save, which returns when its copy is made, with one stager for all saves, as many writer threads, and
without CRC-32: its fastest setting without a device."""
from interference.training import Training


class Contender(Training):
    def setup(self):
        super().setup()
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
        self.torch.serialization.set_crc32_options(False)
        self.dcp = dcp
        self.stager = DefaultStager(StagingOptions(use_pinned_memory=False, use_shared_memory=False,
                                                   use_async_staging=False, use_non_blocking_copy=False))

    def begin(self):
        writer = self.dcp.FileSystemWriter(self.path, thread_count=self.threads)
        self.future = self.dcp.async_save(self.values, storage_writer=writer, async_stager=self.stager)

    def ended(self):
        return self.future.done()

    def end(self):
        self.future.result()
        self.future = None

    def load(self, target):
        self.dcp.load(target, checkpoint_id=self.path)
