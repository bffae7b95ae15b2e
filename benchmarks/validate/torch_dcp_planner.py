# SPDX-License-Identifier: Apache-2.0
"""torch's validation of a global plan on chunks of the same layout: bounds, overlaps by its sweep, and volumes."""
import ctypes
import os

from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
            from torch.distributed.checkpoint.default_planner import _validate_global_plan
            from torch.distributed.checkpoint.metadata import (
                ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata)
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions, self.validate = {"torch": torch.__version__}, _validate_global_plan
        shape, boxes = self.boxes()
        chunks = [ChunkStorageMetadata(offsets=torch.Size(o), sizes=torch.Size(s)) for o, s in boxes]
        tensor = TensorStorageMetadata(properties=TensorProperties(), size=torch.Size(shape), chunks=chunks)
        self.metadata = Metadata(state_dict_metadata={"w": tensor})

    def boxes(self):
        """Shape, and offsets and sizes of the chunks, as the core's contender has them."""
        library = ctypes.CDLL(os.path.join(self.params["build"], "lib", "bench_validate.so"))
        library.bench_validate_create.restype = ctypes.c_void_p
        library.bench_validate_create.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        library.bench_validate_chunks.argtypes = [ctypes.c_void_p]
        library.bench_validate_chunks.restype = ctypes.c_int64
        library.bench_validate_boxes.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.bench_validate_boxes.restype = ctypes.c_int32
        catalog = library.bench_validate_create(self.params["layout"].encode(), self.params["chunks"])
        count = library.bench_validate_chunks(catalog)
        values = (ctypes.c_int64 * (6 * (count + 1)))()
        dimensions = library.bench_validate_boxes(catalog, values)
        rows = [tuple(values[i:i + dimensions]) for i in range(0, dimensions * (2 * count + 1), dimensions)]
        library.bench_validate_release.argtypes = [ctypes.c_void_p]
        library.bench_validate_release(catalog)
        return rows[0], list(zip(rows[1::2], rows[2::2], strict=True))

    def run(self):
        self.found = self.validate([None, None], self.metadata)

    def check(self):
        return self.found in (True, [], ())
