# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of two tensor-parallel ranks with the buckets of a distributed optimizer, 1 GiB (64 MiB when QUICK) of weights,
masters and moments, saved again for one rank: `shardwright reshard` with 256 MiB of memory, from a cold source to a durable
target, against one file read and another written at the same time, direct; "read back": and read again, as it is unless told
otherwise. The contents of the buckets are proved against the weights, so those are read twice.

The program is a process of its own: s is that of the whole process, and rss_of_program_bytes its most resident memory, of
which --mem + 64 MiB are allowed. megatron-core cannot take buckets into another tensor-parallel size; beside it stands what it
can do, load the same contents as `fully_reshardable` on one rank and save them, without digests.
"""
LAYERS = 16
MEMORY_MIB = 256


def variants(quick):
    size = (64 if quick else 1024) << 20
    threads = [2] if quick else [1, 2]
    return [{"name": "TP 2 to 1" + (", read back" if compare else ""), "op": "reshard", "floor": floor, "floor_bytes": size,
             "reps": 3 if quick else 7,
             "params": {"bytes": size, "layers": LAYERS, "memory": MEMORY_MIB << 20, "compare": compare},
             "line": {"bytes": size, "layers": LAYERS, "memory_bytes": MEMORY_MIB << 20, "cache": "cold",
                      "fsync": "files+dir", "read_back": compare, "check": "bytes of weights and states"},
             "contenders": [("shardwright", threads)] + ([] if compare else [("megatron_core", threads)])}
            for compare, floor in ((False, "dcopy"), (True, "dcopyback"))]
