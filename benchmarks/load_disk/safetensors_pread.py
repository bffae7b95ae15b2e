# SPDX-License-Identifier: Apache-2.0
"""safetensors, read as a whole with read(), then a copy into the destination."""
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
        self.library, self.versions = safetensors, {"safetensors": safetensors.__version__}
        self.path = os.path.join(self.directory, "in.safetensors")
        state = states.arrays(self.params)
        safetensors.numpy.save_file(state, self.path)
        self.expected = states.digests(state)
        self.target = state  # allocated and touched; prepare() wipes it

    def prepare(self):
        for a in self.target.values():
            a.fill(1)
        cache.drop(self.path)

    def run(self):
        with open(self.path, "rb") as f:
            loaded = self.library.numpy.load(f.read())
        for name, array in self.target.items():
            array[...] = loaded[name]

    def check(self):
        return states.digests(self.target) == self.expected
