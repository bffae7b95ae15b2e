# SPDX-License-Identifier: Apache-2.0
"""One save of a sharded state dict by 1, 2 and 4 processes that meet over Gloo: 1 GiB (64 MiB when QUICK) and 16 MiB in 64
float32 tensors cut into rows. The strategies stay from save to save, as a training job keeps them.

save: durable, until the last rank has returned and files and directories are synced, against the direct write of as many
bytes by one process. save_async: until the tensors may change, against one copy of as many bytes in memory; what follows
in the background is waited for outside the timing. first_s is the first save of the process, which plans; the others have
the plan of the one before (first_ratio: its floor over it). Access validation is on, as it is unless told otherwise.
"""
TENSORS, COLUMNS = 64, 1024
LARGE, SMALL, QUICK = 1024, 16, 64


def variants(quick):
    threads = [2] if quick else [1, 2]
    return [made(quick, threads, op, mib, world)
            for op in ("save", "save_async")
            for mib in ((QUICK,) if quick else (LARGE, SMALL))
            for world in ((2,) if quick else (1, 2, 4))]


def made(quick, threads, op, mib, world):
    size = mib << 20
    later = op == "save_async"
    line = {"bytes": size, "tensors": TENSORS, "world": world, "layout": "rows",
            "check": "read back by all ranks" + (", as it was when the call returned" if later else "")}
    ranks = f"{world} ranks" if world > 1 else "1 rank"
    return {"name": f"{ranks}, {mib} MiB", "op": op, "floor": "memcpy" if later else "dwrite",
            "first_floor": "fresh" if later else "dwrite", "floor_bytes": size, "reps": 3 if quick else 7,
            "params": {"bytes": size, "tensors": TENSORS, "columns": COLUMNS, "world": world, "op": op},
            "line": line if later else line | {"fsync": "files+dir"},
            "contenders": [("shardwright", threads), ("megatron_core", threads)]
                           + ([] if later else [("shardwright_unvalidated", threads)])}
