# SPDX-License-Identifier: Apache-2.0
"""One conversion of 1 GiB (512 MiB when QUICK) in 100 float32 tensors from a native checkpoint to safetensors, and back: cold
source, durable target, digests checked while reading and again of what was written. The floor reads one file and writes
another at the same time, direct.

Contenders read and write once; only ours also reads back what it wrote.
"""
TENSORS = 100


def variants(quick):
    size = (512 if quick else 1024) << 20
    threads = [2] if quick else [1, 2]
    line = {"bytes": size, "tensors": TENSORS, "check": "tensor digests", "fsync": "files+dir", "cache": "cold"}
    return [{"name": name, "op": "convert", "params": {"bytes": size, "tensors": TENSORS, "target": target},
             "line": line | {"target": target}, "floor": "dcopy", "floor_bytes": size, "reps": 3 if quick else 7,
             "contenders": [("shardwright", threads), ("shardwright_uncompared", threads)] + others}
            for name, target, others in (("to safetensors", "safetensors", ["torch_and_safetensors"]),
                                         ("to native", "native", []))]
