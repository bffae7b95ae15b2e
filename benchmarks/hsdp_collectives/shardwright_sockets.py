# SPDX-License-Identifier: Apache-2.0
"""The same over Gloo's sockets, as ranks of several machines have it."""
import os

from hsdp_collectives.shardwright import Contender as Base


class Contender(Base):
    def setup(self):
        os.environ["SHW_TORCH_COLLECTIVE"] = "c10d"
        super().setup()
