# SPDX-License-Identifier: Apache-2.0
"""Grouped sharded state dicts as states of the library, which then plans and writes without asking a planner."""
from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import torch

from ....layout import Shard
from ....state import ObjectEntry
from ...dcp._flat_state import ARCHIVE, FlatState, Leaves
from ..checkpointable import _Boxes


class ShardLeaves(Leaves):
    """Values of mcore_to_pyt_state_dict, as shards with the boxes that they have."""

    def convert(self, name: str, value: Any) -> Any:
        """A Shard; None for one without elements."""
        if not isinstance(value, _Boxes):
            return super().convert(name, value)
        boxes = value.write_boxes()
        if not boxes:
            return None
        # Shards of one tensor lie apart, and an entry has one memory.
        local = boxes[0].view if len(boxes) == 1 else torch.cat([box.view.reshape(-1) for box in boxes])
        return Shard(self._on_host(name, local), tuple(value.size()), tuple((tuple(b.offsets), tuple(b.sizes)) for b in boxes))


class ShardedState(FlatState):
    """The state of one rank. Streams of bytes are archives of objects already."""

    def __init__(self, tree: Mapping[str, Any], leaves: ShardLeaves, rank: int) -> None:
        super().__init__(tree, leaves, writable=False, rank=rank)

    def _content(self, entry: ObjectEntry) -> tuple[bytes, str]:
        if isinstance(entry.value, io.BytesIO):
            return entry.value.getvalue(), ARCHIVE
        return super()._content(entry)
