# SPDX-License-Identifier: Apache-2.0
"""One conversion of 1 GiB (512 MiB when QUICK) in 100 float32 tensors from a native checkpoint to safetensors, and back: cold
source, durable target, digests of the source checked while reading. The floor reads one file and writes another at the same
time, direct.

"read back": as conversions are unless told otherwise: what was written is read again and compared with what was read. The
floor reads again as well.
"""
TENSORS = 100


def variants(quick):
    size = (512 if quick else 1024) << 20
    threads = [2] if quick else [1, 2]
    line = {"bytes": size, "tensors": TENSORS, "check": "tensor digests", "fsync": "files+dir", "cache": "cold"}
    return [{"name": f"to {target}{suffix}", "op": "convert",
             "params": {"bytes": size, "tensors": TENSORS, "target": target, "compare": compare},
             "line": line | {"target": target, "read_back": compare}, "floor": floor, "floor_bytes": size,
             "reps": 3 if quick else 7,
             "contenders": [("shardwright", threads)]
                           + (["torch_and_safetensors"] if target == "safetensors" and not compare else [])}
            for target in ("safetensors", "native")
            for suffix, compare, floor in (("", False, "dcopy"), (", read back", True, "dcopyback"))]
