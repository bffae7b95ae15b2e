# SPDX-License-Identifier: Apache-2.0
"""A step of training of 67 million parameters (8 blocks of 1,024 and 4,096; 2 of them when QUICK), by 2 and by 4 processes that
meet over Gloo on this machine's loopback, one thread each: forward, backward, SGD with momentum, gradients dropped. A unit per
block. Variants: two replicas of two shards, and so many tokens that computing takes most of the time.

There is no floor: the contender `alone` shows what the step costs without the other ranks. Before the first round, parameters
are compared with those of one process that takes the micro-batches of all ranks in the order of the reduction; equal_bits
is the share of elements that are equal in every bit. step_peak_bytes is the resident memory of a rank at its highest during a step.
"""
WIDTH, HIDDEN, BLOCKS = 1024, 4096, 8


def variants(quick):
    wanted = [((2,), 256), ((2,), 2048)] if quick else [((2,), 256), ((4,), 256), ((2, 2), 256), ((2,), 2048)]
    return [variant(quick, shape, tokens) for shape, tokens in wanted]


def variant(quick, shape, tokens):
    blocks = 2 if quick else BLOCKS
    world = shape[0] * (shape[1] if len(shape) == 2 else 1)
    params = {"shape": list(shape), "world": world, "tokens": tokens, "width": WIDTH, "hidden": HIDDEN, "blocks": blocks}
    peers = ["fsdp2", "fsdp2_sum"] + (["ddp"] if world == 2 else [])  # four times all of it leaves no memory
    return {"name": f"mesh {'x'.join(map(str, shape))}, {tokens} tokens", "op": "step", "reps": 3 if quick else 10,
            "params": params,
            "line": {"world": world, "mesh": list(shape), "tokens": tokens, "parameters": 2 * WIDTH * HIDDEN * blocks,
                     "check": "parameters after three steps, against one process"},
            "contenders": ["shardwright", *peers, "alone"]}
