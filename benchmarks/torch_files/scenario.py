# SPDX-License-Identifier: Apache-2.0
"""Directories of torch.distributed.checkpoint, written and read in one process through the same calls of two packages:
1 GiB (512 MiB when QUICK) in 100 float32 tensors, and 10,000 of 4 KiB. Saves are durable; torch DCP has plans that it keeps,
writer threads and no CRC-32, ours has both checksums and digests.

Loads are in place into memory that was touched before. "by torch": the directory that torch wrote, which has no digests; ours
checks the checksums that it has. "by itself": what each package wrote; ours verifies every digest.
"""
LARGE, SMALL = 100, 10_000


def variants(quick):
    size = (512 if quick else 1024) << 20
    threads = [2] if quick else [1, 2]
    many = {"bytes": SMALL * 4096, "tensors": SMALL}
    large = {"bytes": size, "tensors": LARGE}
    wanted = [("save", large, "", "", "dwrite"), ("save", many, "", "", None)]
    for cache, floor in (("cold", "dread"), ("warm", "memcpy")):
        wanted += [("load", large, cache, writer, floor) for writer in ("torch", "itself")]
    wanted += [("load", many, "warm", writer, None) for writer in ("torch", "itself")]
    return [variant(quick, threads, *each) for each in wanted]


def variant(quick, threads, op, what, cache, writer, floor):
    size = "1 GiB" if what["tensors"] == LARGE else f"{SMALL:,} x 4 KiB"
    line = what | {"check": "read back"} | ({"cache": cache, "written_by": writer} if op == "load" else {"fsync": "files+dir"})
    made = {"name": f"{op}, {size}" + (f", {cache}, by {writer}" if cache else ""), "op": op, "params":
            what | {"op": op, "cache": cache, "writer": writer}, "line": line, "reps": 3 if quick else 7,
            "contenders": [("shardwright", threads), ("torch_dcp", threads)]}
    if floor:
        made |= {"floor": floor, "floor_bytes": what["bytes"]}
    return made
