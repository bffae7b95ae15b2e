# SPDX-License-Identifier: Apache-2.0
"""The core's cover proof."""
import ctypes
import os

from driver.contender import Base, cpu_seconds

SMALL_CHUNKS = 64


class Contender(Base):
    def setup(self):
        self.library = ctypes.CDLL(os.path.join(self.params["build"], "lib", "bench_validate.so"))
        self.library.bench_validate_create.restype = ctypes.c_void_p
        self.library.bench_validate_create.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        self.library.bench_validate_check.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        self.library.bench_validate_prove.argtypes = [ctypes.c_void_p]
        self.layout = self.params["layout"].encode()
        self.catalog = self.library.bench_validate_create(self.layout, self.params["chunks"])
        if not self.catalog:
            raise RuntimeError("the chunks cannot be described")

    def run(self):
        before = cpu_seconds()
        self.proved = self.library.bench_validate_prove(self.catalog)
        return {"cpu_ms": (cpu_seconds() - before) * 1e3}

    def check(self):
        return self.proved == 1 and self.library.bench_validate_check(self.layout, SMALL_CHUNKS) == 1
