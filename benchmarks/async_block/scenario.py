# SPDX-License-Identifier: Apache-2.0
"""How long a save in the background keeps the caller: from the call until its tensors may change, for 512 MiB (128 MiB
when QUICK) in 64 float32 tensors cut into rows, by 1, 2 and 4 processes that meet over Gloo, against one copy of as many
bytes in memory. What follows in the background is waited for outside the timing and checked.

first_s is the time of the first save of the process, whose staging memory is new unless it was prepared; the others are those
after it. Its floor is one copy of as many bytes into memory that was never touched (first_ratio).

With hold nothing is copied: the call returns at once, and whoever changes the tensors waits. That is timed with 10,000 DTensors
of 4 KiB, too, as what it costs goes with their number.
"""
TENSORS, COLUMNS = 64, 1024
SMALL_TENSORS, SMALL_BYTES, SMALL_COLUMNS = 10000, 4096, 64


def variants(quick):
    threads = [2] if quick else [1, 2]
    peers = [("torch_dcp", threads), ("torch_dcp_kept_stager", threads)]
    ours = [("shardwright", threads), ("shardwright_prepared", threads), ("shardwright_hold", threads)]
    size = (128 if quick else 512) << 20
    large = [_variant(f"{world} ranks" if world > 1 else "1 rank", world, size, TENSORS, COLUMNS, ours + peers, quick)
             for world in ((2,) if quick else (1, 2, 4))]
    small = _variant("10,000 x 4 KiB", 1, SMALL_TENSORS * SMALL_BYTES, SMALL_TENSORS, SMALL_COLUMNS,
                     [("shardwright", threads), ("shardwright_hold", threads), ("torch_dcp_kept_stager", threads)], quick)
    return large + ([] if quick else [small])


def _variant(name, world, size, tensors, columns, contenders, quick):
    return {"name": name, "op": "save_async", "floor": "memcpy", "first_floor": "fresh", "floor_bytes": size,
            "reps": 3 if quick else 7,
            "params": {"bytes": size, "tensors": tensors, "columns": columns, "world": world},
            "line": {"bytes": size, "tensors": tensors, "world": world, "layout": "rows",
                     "check": "read back by all ranks, as it was when the call returned"},
            "contenders": contenders}
