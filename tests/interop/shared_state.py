# SPDX-License-Identifier: Apache-2.0
"""One state that everybody writes, and the ways in which 1 to 4 ranks hold it: FSDP2, TP, HSDP, and FSDP2 over TP.

Equal values everywhere, so that one table of digests is the truth of every directory.
"""
import hashlib
import itertools
import json

import torch
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard

# What no rank splits comes first: some languages give the library whole tensors before parts.
SHAPES = {"model.scalar": (torch.float64, ()), "model.even": (torch.float32, (8, 8)), "model.uneven": (torch.bfloat16, (10, 7)),
          "model.few": (torch.int64, (1, 3)), "bias": (torch.float16, (5,)), "flags": (torch.bool, (6,)),
          "packed": (torch.float8_e4m3fn, (4, 4))}
OBJECTS = {"step": 7, "lr": 0.125, "name": "run \u00e4", "notes": [True, None, "x"]}
# Layout -> shape of its mesh, placements. The first letter counts the ranks.
LAYOUTS = {
    "1 whole": ((1,), (Replicate(),)),
    "2 rows": ((2,), (Shard(0),)), "2 columns": ((2,), (Shard(1),)),
    "3 rows": ((3,), (Shard(0),)), "3 columns": ((3,), (Shard(1),)),
    "4 rows": ((4,), (Shard(0),)), "4 hybrid": ((2, 2), (Replicate(), Shard(0))), "4 grid": ((2, 2), (Shard(0), Shard(1))),
    "4 strided": ((2, 2), (_StridedShard(0, split_factor=2), Shard(0)))}


def ranks_of(layout):
    return int(layout[0])


def values():
    made = {}
    for name, (dtype, shape) in SHAPES.items():
        count = torch.Size(shape).numel()
        numbers = (torch.arange(count) * 7 + len(name)) % (2 if dtype == torch.bool else 120)
        made[name] = numbers.to(torch.float32).to(dtype).reshape(shape)
    return made


def data_of(tensor):
    """Row-major bytes."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def digests():
    return {name: hashlib.sha256(data_of(value)).hexdigest() for name, value in values().items()}


def placements_of(layout, ndim):
    """What the tensor does not have of dimensions is not split."""
    return [Replicate() if isinstance(p, Shard | _StridedShard) and p.dim >= ndim else p for p in LAYOUTS[layout][1]]


def is_whole(layout, ndim):
    """Whether every rank holds all of the tensor."""
    return all(isinstance(p, Replicate) for p in placements_of(layout, ndim))


def box_of(layout, shape, rank):
    """(offsets, sizes) of the one box that a rank holds."""
    mesh = LAYOUTS[layout][0]
    coordinate = list(itertools.product(*map(range, mesh)))[rank]
    sizes, offsets = _compute_local_shape_and_global_offset(shape, mesh, list(coordinate), placements_of(layout, len(shape)))
    return list(offsets), list(sizes)


def part_of(value, box):
    return value[tuple(slice(o, o + s) for o, s in zip(*box, strict=True))]


def object_text(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
