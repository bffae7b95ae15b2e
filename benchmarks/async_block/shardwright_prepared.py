# SPDX-License-Identifier: Apache-2.0
"""The same after shardwright.torch.prepare, so that the first save finds its memory and its groups."""
import shardwright.torch
from async_block.shardwright import Contender as Base


class Contender(Base):
    def setup(self):
        super().setup()
        shardwright.torch.prepare(self.values)
