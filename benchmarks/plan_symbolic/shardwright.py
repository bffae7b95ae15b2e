# SPDX-License-Identifier: Apache-2.0
"""The symbolic planner: representative decoded, world checked, plan made, one rank's write list taken."""
import ctypes
import os

from driver.contender import Base

CHECKED_MESH = (4, 64, 4)


class Contender(Base):
    def setup(self):
        self.library = ctypes.CDLL(os.path.join(self.params["build"], "lib", "bench_plan_symbolic.so"))
        for name in ("plan_bytes", "description_bytes", "items", "chunks"):
            getattr(self.library, f"bench_{name}").restype = ctypes.c_uint64
        self.make(self.params["mesh"])

    def make(self, mesh):
        tensors, all_differ = self.params["tensors"], self.params["all_differ"]
        if not self.library.bench_make(*mesh, tensors, int(all_differ)):
            raise RuntimeError("the job could not be described")

    def run(self):
        if not self.library.bench_plan_symbolic():
            raise RuntimeError("the job could not be planned")
        items = self.library.bench_items()
        return {"engine": "symbolic", "plan_bytes_per_item": self.library.bench_plan_bytes() / items,
                "chunks": self.library.bench_chunks(), "exchange_bytes_per_rank": 16,
                "description_bytes_per_tensor": self.library.bench_description_bytes() / self.params["tensors"]}

    def check(self):
        self.make(CHECKED_MESH)
        equal = self.library.bench_compare() == 1
        self.make(self.params["mesh"])
        return equal
