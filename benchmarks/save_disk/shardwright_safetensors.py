# SPDX-License-Identifier: Apache-2.0
"""shardwright writing one safetensors file: durable, commit included; the format has no digests."""
import os

from save_disk import shardwright as native


class Contender(native.Contender):
    name = "out.safetensors"
    format = "safetensors"

    def prepare(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
