# SPDX-License-Identifier: Apache-2.0
"""The two operations of sharded training by themselves, 64 MiB (16 MiB when QUICK) of float32 in all, by 2 and 4 processes that
meet over Gloo on this machine: gathering what each rank has a part of, and averaging what each rank has all of into the parts. Against one copy in
memory of as many bytes.
"""


def variants(quick):
    size = (16 if quick else 64) << 20
    return [{"name": f"{op}, {world} ranks", "op": op, "floor": "memcpy", "floor_bytes": size, "reps": 3 if quick else 11,
             "params": {"world": world, "op": op, "bytes": size},
             "line": {"bytes": size, "world": world, "check": "every element"},
             "contenders": ["shardwright", "shardwright_sockets", "torch"]}
            for world in ((2,) if quick else (2, 4)) for op in ("gather", "reduce")]
