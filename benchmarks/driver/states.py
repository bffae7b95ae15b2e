# SPDX-License-Identifier: Apache-2.0
"""The states that scenarios move: reproducible random tensors, never zeros."""
import hashlib

import numpy


def each_array(params):
    """Name and float32 array, one after the other; params: bytes, tensors, start."""
    count = params["tensors"]
    elements = params["bytes"] // count // 4
    generator = numpy.random.Generator(numpy.random.SFC64(params.get("start", 1)))
    for i in range(count):
        # 64 bits a draw: making the data must not cost more than moving it.
        raw = generator.integers(0, 2**64, size=(elements + 1) // 2, dtype=numpy.uint64)
        yield f"layers.{i}.weight", raw.view(numpy.float32)[:elements]


def arrays(params):
    """Name -> float32 array; params as of each_array."""
    return dict(each_array(params))


def digests(named):
    """SHA-256 of each tensor, read in place; the processors that benchmarks run on have instructions for it."""
    return {name: hashlib.sha256(memoryview(a).cast("B")).digest() for name, a in named.items()}


def torch_tensors(params):
    """The same as torch tensors that share the arrays' memory."""
    import torch
    return {name: torch.from_numpy(a) for name, a in arrays(params).items()}


def tensor_digests(named):
    return digests({name: t.numpy() for name, t in named.items()})
