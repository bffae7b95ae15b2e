# SPDX-License-Identifier: Apache-2.0
"""State from flat arrays (names in one blob, addresses, dtypes, shapes), one bulk call."""
import fit
import shardwright
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import numpy
        except ImportError as e:
            raise Skip(f"numpy not importable: {e}") from e
        self.versions = {"numpy": numpy.__version__}
        self.host = fit.CHost(self.params)
        self.memory = numpy.ones((max(self.params["counts"]), 4), dtype=numpy.float32)
        self.batches = [self.batch(numpy, n) for n in self.params["counts"]]

    def batch(self, numpy, count):
        """Arguments of State.from_arrays for `count` float32 tensors of four elements."""
        names = [f"layers.{i}.weight".encode() for i in range(count)]
        offsets = numpy.zeros(count + 1, dtype=numpy.uint64)
        numpy.cumsum([len(n) for n in names], out=offsets[1:])
        addresses = self.memory.ctypes.data + 16 * numpy.arange(count, dtype=numpy.uint64)
        dtypes = numpy.full(count, shardwright.dtype_number("float32"), dtype=numpy.uint16)
        shapes = numpy.full(count, 4, dtype=numpy.int64)
        return b"".join(names), offsets, addresses, dtypes, shapes, numpy.arange(count + 1, dtype=numpy.uint64)

    def run(self):
        return fit.measured(self.params, self.host, lambda b: shardwright.State.from_arrays(*b), self.batches)

    def check(self):
        state = shardwright.State.from_arrays(*self.batches[0])
        return state.names() == [f"layers.{i}.weight" for i in range(self.params["counts"][0])]
