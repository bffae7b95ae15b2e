# SPDX-License-Identifier: Apache-2.0
"""A durable save of many tensors of 1 KiB: the cost is per tensor, not per byte."""


def variants(quick):
    count = 10_000 if quick else 100_000
    line = {"bytes": count * 1024, "tensors": count, "check": "read back", "fsync": "files+dir"}
    return [{"name": f"{count} x 1 KiB", "op": "save", "params": {"bytes": count * 1024, "tensors": count}, "line": line,
             "reps": 3, "contenders": [("shardwright", [1, 2]), ("torch_dcp", [2] if quick else [1, 2])]}]
