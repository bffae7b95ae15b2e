# SPDX-License-Identifier: Apache-2.0
"""Chunks that a rank wants of a value."""
from __future__ import annotations

from typing import Any

from ..errors import InvalidArgumentError
from .framework import Framework
from .layouts import LayoutReader
from .model import ChunkStorageMetadata

_NUMPY = Framework()


def chunk_list(framework: Framework, obj: Any, rank: int | None) -> list[ChunkStorageMetadata]:
    """create_chunk_list_for_tensor over a framework's tensors."""
    if not framework.is_distributed(obj) and not framework.is_tensor(obj):
        raise InvalidArgumentError(f"a {type(obj).__qualname__} is no tensor and has no chunks", {"parameter": "obj"})
    held = framework.wanted("the tensor", obj, framework.current_rank() if rank is None else rank,
                            LayoutReader())
    return [] if held is None else [ChunkStorageMetadata(tuple(offsets), tuple(sizes)) for offsets, sizes in held.boxes]


def create_chunk_list_for_tensor(obj: Any, rank: int | None = None) -> list[ChunkStorageMetadata]:
    """Chunks of the global tensor that a rank wants filled.

    Args:
        obj: a distributed tensor (its boxes under its layout; the whole when the layout is None or incomplete; none
            when the layout leaves the rank out) or a whole tensor (one chunk).
        rank: whose chunks; None = that of this process, 0 without a process group.
    Raises InvalidArgumentError (a ValueError) for anything else.
    """
    return chunk_list(_NUMPY, obj, rank)
