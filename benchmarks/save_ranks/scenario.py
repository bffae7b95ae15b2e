# SPDX-License-Identifier: Apache-2.0
"""One durable save of 1 GiB (256 MiB when QUICK) by 2 and by 4 processes that meet over Gloo: 64 float32 tensors cut into
rows, as DTensors, against the direct-write floor of the same bytes by one process.

Time ends when the last rank has returned and files and directories are synced.
"""
TENSORS, COLUMNS = 64, 1024


def variants(quick):
    size = (256 if quick else 1024) << 20
    threads = [2] if quick else [1, 2]
    return [{"name": f"{world} ranks", "op": "save", "floor": "dwrite", "floor_bytes": size, "reps": 3 if quick else 7,
             "params": {"bytes": size, "tensors": TENSORS, "columns": COLUMNS, "world": world},
             "line": {"bytes": size, "tensors": TENSORS, "world": world, "layout": "rows", "fsync": "files+dir",
                      "check": "read back by all ranks"},
             "contenders": [("shardwright", threads), ("shardwright_torch_dcp", threads), ("torch_dcp", threads)]} for world in ((2,) if quick else (2, 4))]
