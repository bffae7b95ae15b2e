# SPDX-License-Identifier: Apache-2.0
"""The core's merge over plan buffers that lie behind one another, as a coordinator has them."""
import ctypes
import pathlib

import shardwright
from driver import memory
from driver.contender import Base

LIBRARY = pathlib.Path(shardwright.__file__).resolve().parents[2] / "lib" / "bench_plan_save.so"
ALLOWED_BYTES = 96  # of memory per item at the peak, beside the plans of the ranks
COUNTED_ITEMS = 200_000  # of fewer, the allocator's own reserves are what shows


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.core = ctypes.CDLL(str(LIBRARY))
        self.core.bench_save_create.restype = ctypes.c_void_p
        self.core.bench_save_create.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32]
        for name in ("merge", "global_plan", "open", "encode", "bytes"):
            getattr(self.core, f"bench_save_{name}").restype = ctypes.c_int64
        self.bench = ctypes.c_void_p(self.core.bench_save_create(
            self.params["ranks"], self.params["items"], self.params.get("boxes", 1), self.params.get("all_cut", False)))
        if not self.bench:
            raise RuntimeError("the ranks could not be described")
        self.policy = self.params["policy"]
        self.checked = False
        self.beside = 0.0  # the most bytes per item of all merges

    def prepare(self):
        memory.forget_peak()
        self.before = memory.peak_bytes()

    def run(self):
        if self.params["op"] != "merge":
            self.result = getattr(self.core, f"bench_save_{self.params['op']}")(self.bench)
        elif self.policy is None:
            self.result = self.core.bench_save_global_plan(self.bench)
        else:
            self.result = self.core.bench_save_merge(self.bench, self.policy["preset"], self.policy["owner"])
            added = memory.peak_bytes() - self.before
            items = self.params["ranks"] * self.params["items"]
            self.beside = max(self.beside, added / items if items >= COUNTED_ITEMS else 0.0)
        return {"plan_bytes": self.core.bench_save_bytes(self.bench), "bytes_per_item": self.beside}

    def check(self):
        if self.result <= 0 or self.beside > ALLOWED_BYTES:
            return False
        if self.params["op"] == "merge" and self.policy is None:
            ranks, items = self.params["ranks"], self.params["items"]
            return self.result == (items + 1) // 2 * ranks + items // 2
        if self.params["op"] != "merge" or self.checked:
            return True
        self.checked = bool(self.core.bench_save_check(self.bench, self.policy["preset"], self.policy["owner"]))
        return self.checked
