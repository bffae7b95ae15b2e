# SPDX-License-Identifier: Apache-2.0
"""What memory the library holds for units."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = {"shard": 0, "cast": 1, "gathered": 2, "params": 3, "local_grads": 4, "packed": 5, "landing": 6, "scattered": 7,
         "partial": 8, "secondary": 9, "shard_grads": 10}
ALL = -1


@dataclass(frozen=True)
class Memory:
    """Bytes and buffers now, the most bytes there were, and buffers that there ever were."""

    current_bytes: int
    peak_bytes: int
    current_buffers: int
    total_buffers: int
    padding_bytes: int
    """Of this rank's shards; part of current_bytes."""
    unsharded_units: int
    """Units that are not sharded now."""

    @classmethod
    def of(cls, row: Any) -> Memory:
        """From what the library gives."""
        return cls(row.current_bytes, row.peak_bytes, row.current_buffers, row.total_buffers, row.padding_bytes,
                   row.unsharded_units)
