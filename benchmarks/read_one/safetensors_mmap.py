# SPDX-License-Identifier: Apache-2.0
"""safetensors with an open file, memory-mapped; it checks no digests."""
import os

import reads
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import safetensors
            import safetensors.numpy
        except ImportError as e:
            raise Skip(f"safetensors not importable: {e}") from e
        self.versions = {"safetensors": safetensors.__version__}
        path = os.path.join(self.directory, "in.safetensors")
        safetensors.numpy.save_file(reads.state(self.params), path)
        self.file = safetensors.safe_open(path, framework="numpy").__enter__()
        self.numbers = reads.chosen(self.params)
        self.names = [reads.name(number) for number in self.numbers]

    def run(self):
        for name in self.names:
            self.file.get_tensor(name)

    def check(self):
        return reads.right(self.numbers[:100], self.file.get_tensor)
