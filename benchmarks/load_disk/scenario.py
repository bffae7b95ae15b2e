# SPDX-License-Identifier: Apache-2.0
"""One load of 1 GiB (512 MiB when QUICK) in 100 float32 tensors into memory that was allocated and touched before. Each
contender's files are written once, in its setup.

cold: the page cache is emptied before each load, against the direct-read floor of the same round. warm: the files are in
the page cache, against one copy of as many bytes in memory. Both states are checked by mincore.
"""
TENSORS = 100
FLOORS = {"cold": "dread", "warm": "memcpy"}


def variants(quick):
    size = (512 if quick else 1024) << 20
    threads = [2] if quick else [1, 2]
    contenders = [(name, threads) for name in ("shardwright", "shardwright_unverified", "shardwright_safetensors",
                                               "torch_load_mmap", "safetensors_pread", "safetensors_mmap", "torch_dcp")]
    return [{"name": cache, "op": "load", "params": {"bytes": size, "tensors": TENSORS, "cache": cache},
             "line": {"bytes": size, "tensors": TENSORS, "check": "tensor bytes", "cache": cache},
             "floor": floor, "floor_bytes": size, "reps": 3 if quick else 7, "contenders": contenders}
            for cache, floor in FLOORS.items()]
