# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one core for the global save plan of a whole job from what its ranks exchange: 16 bytes each and one
description. The job is a transformer under hybrid sharding with tensor parallelism. Before the timing the plan of a
smaller mesh (1,024 ranks) is compared in every byte with that of the same job
described box by box.
"""


def variant(name, mesh, tensors, all_differ, contenders, quick):
    ranks = mesh[0] * mesh[1] * mesh[2]
    line = {"ranks": ranks, "items_per_rank": tensors, "items": ranks * tensors,
            "check": "equal to the plan of the same job box by box at 1,024 ranks, every byte"}
    params = {"mesh": mesh, "tensors": tensors, "all_differ": all_differ}
    return {"name": name, "op": "plan", "params": params, "line": line, "reps": 3 if quick else 7,
            "contenders": contenders}


def variants(quick):
    both, symbolic = ["shardwright", "explicit"], ["shardwright"]
    made = [variant("1024 x 1000", (4, 64, 4), 1000, False, both, quick)]
    if quick:
        return made
    return made + [variant("16384 x 1000", (8, 256, 8), 1000, False, symbolic, quick),
                   variant("16384 x 1000, all shapes differ", (8, 256, 8), 1000, True, symbolic, quick),
                   variant("131072 x 2000", (64, 256, 8), 2000, False, symbolic, quick)]
