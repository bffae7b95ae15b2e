# SPDX-License-Identifier: Apache-2.0
"""The core's load planner, without a checkpoint around it."""
import ctypes
import os

from driver.contender import Base, cpu_seconds

SMALL_CHUNKS, SMALL_TENSORS = 64, 3


class Contender(Base):
    def setup(self):
        self.library = ctypes.CDLL(os.path.join(self.params["build"], "lib", "bench_plan_load.so"))
        self.library.bench_load_create.restype = ctypes.c_void_p
        self.library.bench_load_create.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64]
        self.library.bench_load_plan.restype = ctypes.c_int64
        for name in ("index", "plan", "check", "forget", "release"):
            getattr(self.library, f"bench_load_{name}").argtypes = [ctypes.c_void_p]
        self.bench = self.create(self.params["chunks"], self.params["tensors"])
        self.library.bench_load_index(self.bench)

    def create(self, chunks, tensors):
        bench = self.library.bench_load_create(self.params["layout"].encode(), chunks, tensors)
        if not bench:
            raise RuntimeError("the stored tensors cannot be described")
        return bench

    def prepare(self):
        self.library.bench_load_forget(self.bench)

    def run(self):
        before = cpu_seconds()
        if self.params["op"] == "first":
            self.library.bench_load_index(self.bench)
        self.reads = self.library.bench_load_plan(self.bench)
        return {"reads": self.reads, "cpu_ms": (cpu_seconds() - before) * 1e3}

    def check(self):
        small = self.create(SMALL_CHUNKS, SMALL_TENSORS)
        self.library.bench_load_index(small)
        found = self.library.bench_load_plan(small) > 0 and self.library.bench_load_check(small) == 1
        self.library.bench_load_release(small)
        return found and self.reads > 0
