# SPDX-License-Identifier: Apache-2.0
"""The index that the core writes, from the merged plan and the places that ranks reported, without an object of torch."""
import ctypes
import pathlib
import pickle

import shardwright
from driver.contender import Base

LIBRARY = pathlib.Path(shardwright.__file__).resolve().parents[2] / "lib" / "bench_dcp_index.so"


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.core = ctypes.CDLL(str(LIBRARY))
        self.core.bench_index_create.restype = ctypes.c_void_p
        self.core.bench_index_create.argtypes = [ctypes.c_int64, ctypes.c_int64]
        self.core.bench_index_write.restype = ctypes.c_int64
        self.bench = ctypes.c_void_p(self.core.bench_index_create(self.params["ranks"], self.params["items_per_rank"]))
        if not self.bench:
            raise RuntimeError("the index could not be described")
        self.checked = False

    def run(self):
        self.size = self.core.bench_index_write(self.bench)

    def check(self):
        """torch's own classes come out of it, with every chunk and its place."""
        if self.checked:
            return True
        self.run()
        written = ctypes.create_string_buffer(self.size)
        self.core.bench_index_copy(self.bench, written)
        from torch.distributed.checkpoint.filesystem import _StorageInfo
        from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
        found = pickle.loads(written.raw)
        ranks, count = self.params["ranks"], self.params["items_per_rank"]
        places = {MetadataIndex(name, chunk.offsets): number for name, entry in found.state_dict_metadata.items()
                  for number, chunk in enumerate(entry.chunks)}
        self.checked = (type(found) is Metadata and len(found.state_dict_metadata) == count
                        and len(places) == len(found.storage_data) == ranks * (count - count // 5) + count // 5
                        and all(found.storage_data[at] == _StorageInfo("__0_0.distcp", number, 16)
                                for at, number in places.items()))
        return self.checked
