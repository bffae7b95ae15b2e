# SPDX-License-Identifier: Apache-2.0
"""torch DCP's async_save with one stager for all saves, which keeps its memory: its fastest setting without a device."""
from async_block.torch_dcp import Contender as Base


class Contender(Base):
    def setup(self):
        super().setup()
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
        self.stager = DefaultStager(StagingOptions(use_pinned_memory=False, use_shared_memory=False,
                                                   use_async_staging=False, use_non_blocking_copy=False))
