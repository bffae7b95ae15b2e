# SPDX-License-Identifier: Apache-2.0
"""The C ABI, called from C."""
import ctypes
import os

from driver.contender import Base


class Contender(Base):
    def setup(self):
        build = self.params["build"]
        self.library = ctypes.CDLL(os.path.join(build, "lib", "bench_hsdp_phases.so"))
        self.library.bench_iterate.restype = ctypes.c_double
        path = os.path.join(build, "lib", "libshardwright.so.0").encode()
        if self.library.bench_open(path, ctypes.c_uint64(self.params["units"])):
            raise RuntimeError("the C host cannot make its units")

    def run(self):
        self.seconds = self.library.bench_iterate()
        return {"us_per_phase": self.seconds * 1e6 / (4 * self.params["units"])}

    def check(self):
        return self.seconds > 0
