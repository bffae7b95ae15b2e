# SPDX-License-Identifier: Apache-2.0
"""One load of 512 MiB (128 MiB when QUICK, and where 4 ranks hold all: their contenders would not leave memory for the page
cache) by 2 and by 4 processes that meet over Gloo, into DTensors that were allocated
and touched before. 64 float32 tensors are stored in rows by as many processes, and wanted in rows (the layout of the
save), in columns (every rank needs a part of every stored row) or replicated (every rank needs all).

cold: the page cache is emptied before each load, against the direct-read floor of the stored bytes. warm: the files are
in the page cache, against one copy in memory of the bytes that all ranks need. read_per_unique: bytes that came from the
device over the bytes that are stored; given_per_needed: those that reading calls gave, a map of a file aside, over the
bytes that the ranks hold afterwards.
"""
TENSORS, COLUMNS = 64, 1024
LAYOUTS = ["rows", "columns", "replicated"]


def variants(quick):
    threads = [2] if quick else [1, 2]
    made = []
    for world in (2,) if quick else (2, 4):
        for layout in LAYOUTS:
            size = (128 if quick or (world, layout) == (4, "replicated") else 512) << 20
            needed = size * (world if layout == "replicated" else 1)
            for state, floor, floor_bytes in (("cold", "dread", size), ("warm", "memcpy", needed)):
                made.append({
                    "name": f"{world} ranks, {layout}, {state}", "op": "load", "floor": floor, "floor_bytes": floor_bytes,
                    "reps": 3 if quick else 7,
                    "params": {"bytes": size, "tensors": TENSORS, "columns": COLUMNS, "world": world, "layout": layout,
                               "cache": state},
                    "line": {"bytes": size, "tensors": TENSORS, "world": world, "layout": layout, "stored": "rows",
                             "warm": state == "warm", "check": "tensor bytes of every rank"},
                    "contenders": [("shardwright", threads), ("shardwright_torch_dcp", threads), ("torch_dcp", threads),
                                   ("hyperparallel_pattern", threads)]})
    return made
