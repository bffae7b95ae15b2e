# SPDX-License-Identifier: Apache-2.0
"""One cold load of 1 GiB (512 MiB when QUICK) in 100 float32 tensors into memory that was allocated and touched before,
against the direct-read floor of the same round. Each contender's files are written once, in its setup. The page cache is
emptied before each load and that is checked by mincore.
"""
TENSORS = 100


def variants(quick):
    size = (512 if quick else 1024) << 20
    line = {"bytes": size, "tensors": TENSORS, "check": "tensor bytes", "cache": "cold"}
    contenders = ["shardwright", "torch_load_mmap", "safetensors_pread", "safetensors_mmap", "torch_dcp"]
    return [{"name": "cold", "op": "load", "params": {"bytes": size, "tensors": TENSORS}, "line": line,
             "floor": "dread", "floor_bytes": size, "reps": 3 if quick else 7, "contenders": contenders}]
