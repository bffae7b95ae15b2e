# SPDX-License-Identifier: Apache-2.0
"""safetensors.numpy.save_file, then fsync of the file and its directory."""
import os

from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import safetensors
            import safetensors.numpy
        except ImportError as e:
            raise Skip(f"safetensors not importable: {e}") from e
        self.library, self.versions = safetensors.numpy, {"safetensors": safetensors.__version__}
        self.state = states.arrays(self.params)
        self.path = os.path.join(self.directory, "out.safetensors")

    def prepare(self):
        if os.path.exists(self.path):
            os.unlink(self.path)

    def run(self):
        self.library.save_file(self.state, self.path)
        cache.sync_one(self.path)
        cache.sync_one(self.directory)

    def check(self):
        return states.digests(self.library.load_file(self.path)) == states.digests(self.state)
