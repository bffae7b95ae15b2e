# SPDX-License-Identifier: Apache-2.0
"""One load of a sharded state dict of 512 MiB (64 MiB when QUICK) by 1, 2 and 4 processes that meet over Gloo, into tensors
that were allocated and touched before: 64 float32 tensors, saved in rows by as many processes, wanted in rows or in columns
(every rank needs a part of every stored row).

cold: the page cache is emptied before each load, against the direct read of the stored bytes. warm: the files are in the
page cache, against one copy in memory. read_per_unique and given_per_needed are those of load_ranks. Access validation is
on, as it is unless told otherwise.
"""
TENSORS, COLUMNS = 64, 1024


def variants(quick):
    size = (64 if quick else 512) << 20
    threads = [2] if quick else [1, 2]
    return [{"name": f"{world} ranks, {layout}, {state}" if world > 1 else f"1 rank, {layout}, {state}", "op": "load",
             "floor": floor, "floor_bytes": size, "reps": 3 if quick else 7,
             "params": {"bytes": size, "tensors": TENSORS, "columns": COLUMNS, "world": world, "layout": layout, "cache": state},
             "line": {"bytes": size, "tensors": TENSORS, "world": world, "layout": layout, "stored": "rows",
                      "warm": state == "warm", "check": "tensor bytes of every rank"},
             "contenders": [("shardwright", threads), ("shardwright_of_megatron", threads), ("megatron_core", threads)]}
            for world in ((2,) if quick else (1, 2, 4))
            for layout in (("rows", "columns") if world > 1 else ("rows",))
            for state, floor in (("cold", "dread"), ("warm", "memcpy"))]
