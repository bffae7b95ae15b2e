# SPDX-License-Identifier: Apache-2.0
"""How long a save in the background keeps the caller: from the call until its tensors may change, for 512 MiB (128 MiB
when QUICK) in 64 float32 tensors cut into rows, by 1, 2 and 4 processes that meet over Gloo, against one copy of as many
bytes in memory. What follows in the background is waited for outside the timing and checked.

first_s is the time of the first save of the process, whose staging memory is new; the others are those after it. Its floor
is one copy of as many bytes into memory that was never touched (first_ratio).
"""
TENSORS, COLUMNS = 64, 1024


def variants(quick):
    size = (128 if quick else 512) << 20
    threads = [2] if quick else [1, 2]
    return [{"name": f"{world} ranks" if world > 1 else "1 rank", "op": "save_async", "floor": "memcpy",
             "first_floor": "fresh", "floor_bytes": size, "reps": 3 if quick else 7,
             "params": {"bytes": size, "tensors": TENSORS, "columns": COLUMNS, "world": world},
             "line": {"bytes": size, "tensors": TENSORS, "world": world, "layout": "rows",
                      "check": "read back by all ranks, as it was when the call returned"},
             "contenders": [("shardwright", threads), ("torch_dcp", threads), ("torch_dcp_kept_stager", threads)]}
            for world in ((2,) if quick else (1, 2, 4))]
