# SPDX-License-Identifier: Apache-2.0
"""Random worlds: what each of some ranks holds, as state dicts of meta tensors, and how torch and we plan them."""
import itertools
import random

import torch
import torch.distributed.checkpoint.default_planner as original

import shardwright.torch.dcp.planner as ours

DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64)


def plain(shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def placed(shape, boxes, dtype=torch.float32):
    """A local tensor that holds the given (offset, size) boxes of a larger one, one below the other."""
    rows = sum(size[0] for _, size in boxes)
    widest = [max((size[d] for _, size in boxes), default=0) for d in range(1, len(shape))]
    local = torch.empty((rows, *widest), dtype=dtype, device="meta")
    starts = list(itertools.accumulate([size[0] for _, size in boxes], initial=0))
    local.global_shape = tuple(shape)
    local.global_offsets = tuple(tuple(offset) for offset, _ in boxes)
    local.local_offsets = tuple((start, *[0] * (len(shape) - 1)) for start in starts[:len(boxes)])
    local.local_sizes = tuple(tuple(size) for _, size in boxes)
    return local


def cuts(extent, parts, rng):
    """Even parts as DTensor cuts them, the last ones smaller or empty; or random parts."""
    if rng.random() < 0.7:
        step = -(-extent // parts)
        return [(min(i * step, extent), max(0, min(step, extent - i * step))) for i in range(parts)]
    inner = sorted(rng.randrange(extent + 1) for _ in range(parts - 1))
    edges = [0, *inner, extent]
    return [(a, b - a) for a, b in itertools.pairwise(edges)]


def grid(shape, rng, parts_max=4):
    """Boxes that cover a tensor, without those that are empty inside it."""
    axes = [cuts(extent, rng.randint(1, parts_max), rng) for extent in shape]
    boxes = [(tuple(o for o, _ in cell), tuple(s for _, s in cell)) for cell in itertools.product(*axes)]
    return [box for box in boxes if all(s > 0 for s in box[1])]


def sharded_entry(states, name, rng):
    """A tensor in boxes that are dealt to the ranks, some to several; now and then one box is lost or moved."""
    shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
    boxes = grid(shape, rng)
    dtype = rng.choice(DTYPES)
    if rng.random() < 0.06:
        boxes.pop(rng.randrange(len(boxes)))
    if boxes and rng.random() < 0.04:
        offset, size = boxes[rng.randrange(len(boxes))]
        boxes.append((tuple(min(o + 1, e - s) for o, s, e in zip(offset, size, shape, strict=True)), size))
        boxes = list(dict(boxes).items())
    held = [[] for _ in states]
    for box in boxes:
        copies = rng.choice([1, 1, 2, len(states)])
        for rank in rng.sample(range(len(states)), min(copies, len(states))):
            held[rank].append(box)
    for state, mine in zip(states, held, strict=True):
        if mine:
            state[name] = placed(shape, mine, dtype)


def random_world(seed):
    """State dict of every rank."""
    rng = random.Random(seed)
    states = [{} for _ in range(rng.randint(1, 11))]
    for number in range(rng.randint(1, 7)):
        name = f"{'.'.join(rng.choices('abc', k=rng.randint(1, 3)))}{number}"
        kind = rng.random()
        holders = rng.sample(states, rng.randint(1, len(states)))
        if kind < 0.35:
            tensor = plain(tuple(rng.randint(0, 6) for _ in range(rng.randint(0, 3))), rng.choice(DTYPES))
            for state in holders:
                state[name] = tensor
        elif kind < 0.5:
            for state in holders:
                state[name] = {"nested": [number]} if rng.random() < 0.3 else number
        else:
            sharded_entry(states, name, rng)
    return [dict(rng.sample(list(s.items()), len(s))) if rng.random() < 0.5 else s for s in states]


def planned(planner_class, states, touch=(), **options):
    """(local plans, global plans, metadata), or the error of the global step in place of the last two."""
    planners = []
    for rank, state in enumerate(states):
        planner = planner_class(**options)
        planner.set_up_planner(state, None, rank == 0)
        planners.append(planner)
    local = [planner.create_local_plan() for planner in planners]
    for rank in touch:
        len(local[rank].items[:])
    try:
        return (local, *planners[0].create_global_plan(local))
    except Exception as e:
        return local, e, None


def difference(states, touch=(), **options):
    """What differs between torch's plans and ours, as a sentence; None when nothing does."""
    theirs = planned(original.DefaultSavePlanner, states, **options)
    mine = planned(ours.DefaultSavePlanner, states, touch, verify_replicas="off", **options)
    if isinstance(theirs[1], Exception) or isinstance(mine[1], Exception):
        same = isinstance(mine[1], type(theirs[1])) and str(mine[1]) == str(theirs[1])
        return None if same else f"errors differ: {theirs[1]!r} and {mine[1]!r}"
    for what, one, other in zip(("local plans", "global plans", "metadata"), theirs, mine, strict=True):
        if one != other:
            return f"{what} differ: {one} and {other}"
    hints = [[[item.index.index for item in plan.items] for plan in (*found[0], *found[1])] for found in (theirs, mine)]
    if hints[0] != hints[1]:
        return f"hints differ: {hints}"
    names = [list(found[2].state_dict_metadata) for found in (theirs, mine)]
    return None if names[0] == names[1] else f"names differ in order: {names}"
