# SPDX-License-Identifier: Apache-2.0
"""One durable save of 1 GiB in 100 float32 tensors, against the direct-write floor of the same round.

Equal durability: every contender's time ends when files and directories are synced.
"""
GIB = 1 << 30


def variants(quick):
    line = {"bytes": GIB, "tensors": 100, "check": "read back", "fsync": "files+dir"}
    contenders = ["shardwright", "torch_save_fsync", "safetensors_fsync", "torch_dcp"]
    return [{"name": "durable", "op": "save", "params": {"bytes": GIB, "tensors": 100}, "line": line,
             "floor": "dwrite", "floor_bytes": GIB, "reps": 3 if quick else 7, "contenders": contenders}]
