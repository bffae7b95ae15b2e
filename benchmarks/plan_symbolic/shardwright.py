# SPDX-License-Identifier: Apache-2.0
"""The plan of the coordinator: representative decoded and checked, plan made, what one rank is told. Beside it,
in their own best of several runs: all that another rank plans, the manifest opened with its proofs, one rank's load
plan."""
import ctypes
import os
import time

from driver.contender import Base

CHECKED_MESH = (4, 64, 4)
BESIDE_RUNS = 5


class Contender(Base):
    def setup(self):
        self.library = ctypes.CDLL(os.path.join(self.params["build"], "lib", "bench_plan_symbolic.so"))
        for name in ("plan_bytes", "description_bytes", "manifest_bytes", "chunks"):
            getattr(self.library, f"bench_{name}").restype = ctypes.c_uint64
        self.make(self.params["mesh"])
        self.step("plan_job")
        self.step("make_manifest")
        self.beside = {f"{key}_s": min(self.seconds(step) for _ in range(BESIDE_RUNS)) for key, step in
                       (("rank_plan", "plan_rank"), ("open", "open_manifest"), ("load_plan", "plan_load"))}
        self.beside["manifest_bytes"] = self.library.bench_manifest_bytes()

    def make(self, mesh):
        tensors, all_differ = self.params["tensors"], self.params["all_differ"]
        if not self.library.bench_make(*mesh, tensors, int(all_differ)):
            raise RuntimeError("the job could not be described")

    def step(self, name):
        if not getattr(self.library, f"bench_{name}")():
            raise RuntimeError(f"{name} failed")

    def seconds(self, name):
        begin = time.process_time()
        self.step(name)
        return time.process_time() - begin

    def run(self):
        self.step("plan_job")
        ranks = self.params["mesh"][0] * self.params["mesh"][1] * self.params["mesh"][2]
        items = ranks * self.params["tensors"]
        return {"engine": "by layouts", "plan_bytes_per_item": self.library.bench_plan_bytes() / items,
                "chunks": self.library.bench_chunks(), "exchange_bytes_per_rank": 16,
                "description_bytes_per_tensor": self.library.bench_description_bytes() / self.params["tensors"],
                **self.beside}

    def check(self):
        self.make(CHECKED_MESH)
        equal = self.library.bench_compare() == 1
        self.make(self.params["mesh"])
        return equal
