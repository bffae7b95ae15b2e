# SPDX-License-Identifier: Apache-2.0
"""The states that scenarios move: reproducible random tensors, never zeros."""
import hashlib

import numpy


def arrays(params):
    """Name -> float32 array; params: bytes, tensors, start."""
    count = params["tensors"]
    elements = params["bytes"] // count // 4
    generator = numpy.random.Generator(numpy.random.Philox(params.get("start", 1)))
    result = {}
    for i in range(count):
        raw = generator.integers(0, 2**32, size=elements, dtype=numpy.uint32)
        result[f"layers.{i}.weight"] = raw.view(numpy.float32)
    return result


def digests(named):
    return {name: hashlib.blake2b(memoryview(a).cast("B"), digest_size=16).hexdigest() for name, a in named.items()}


def torch_tensors(params):
    """The same as torch tensors that share the arrays' memory."""
    import torch
    return {name: torch.from_numpy(a) for name, a in arrays(params).items()}


def tensor_digests(named):
    return digests({name: t.numpy() for name, t in named.items()})
