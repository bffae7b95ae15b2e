# SPDX-License-Identifier: Apache-2.0
"""What a save in the background costs the training beside it, for 512 MiB (128 MiB when QUICK) in 64 float32 tensors cut into
rows, by 1, 2 and 4 processes that meet over Gloo. Each computes in steps of about 100 ms (matrix products, on as many
threads as there are cores for it), and changes its tensors at the end of each step.

Timed is what the steps lost: the time from the call that begins the save until it is durable and at least eight steps are
done, less as many steps as alone, which are measured before each save. save_s is how long the save took; slow_1 to slow_8
are the steps beside it over a step alone, the first with the call in it. There is no floor: nothing lost would be best.
"""
TENSORS, COLUMNS = 64, 1024


def variants(quick):
    size = (128 if quick else 512) << 20
    threads = [2] if quick else [1, 2]
    return [{"name": f"{world} ranks" if world > 1 else "1 rank", "op": "save_async", "reps": 3 if quick else 5,
             "params": {"bytes": size, "tensors": TENSORS, "columns": COLUMNS, "world": world},
             "line": {"bytes": size, "tensors": TENSORS, "world": world, "layout": "rows",
                      "check": "read back by all ranks, as it was when the save began"},
             "contenders": [("shardwright", threads), ("shardwright_background", threads), ("shardwright_hold", threads),
                            ("torch_dcp", threads)]}
            for world in ((2,) if quick else (1, 2, 4))]
