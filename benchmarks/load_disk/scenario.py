# SPDX-License-Identifier: Apache-2.0
"""One cold load of 1 GiB in 100 float32 tensors into memory that was allocated and touched before, against the
direct-read floor of the same round. The page cache is emptied before each load and that is checked by mincore.
"""
GIB = 1 << 30


def variants(quick):
    line = {"bytes": GIB, "tensors": 100, "check": "tensor bytes", "cache": "cold"}
    contenders = ["shardwright", "torch_load_mmap", "safetensors_pread", "safetensors_mmap", "torch_dcp"]
    return [{"name": "cold", "op": "load", "params": {"bytes": GIB, "tensors": 100}, "line": line,
             "floor": "dread", "floor_bytes": GIB, "reps": 3 if quick else 7, "contenders": contenders}]
