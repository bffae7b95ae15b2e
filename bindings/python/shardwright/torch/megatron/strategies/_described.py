# SPDX-License-Identifier: Apache-2.0
"""Grouped sharded state dicts as states of the library, which then plans, writes and reads without asking a planner."""
from __future__ import annotations

import functools
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ....layout import Shard
from ....mapping import Mapping as Rules
from ....state import ObjectEntry
from ...dcp._archives import Archives
from ...dcp._flat_state import ARCHIVE, FlatState, Leaves, NotDescribed
from ..checkpointable import TensorBox, _Boxes
from ..planners import _is_float8

# Shards of one tensor lie apart, and an entry has one memory: each is an entry by itself, and these rules bring them together.
_PART = "\u241fshard."


@functools.cache
def _together() -> Rules:  # made when it is first needed: a process that has used the library cannot be forked
    return Rules(json.dumps({"schema": 1, "rules": [{"match": f"*{_PART}#", "steps": [{"rename": "{1}"}]}]}))


class ShardLeaves(Leaves):
    """Values of mcore_to_pyt_state_dict, as shards with the boxes that they have.

    Args:
        stored_shapes: of a load: what is stored of tensors whose shape may differ, by name; None = none may.
    """

    def __init__(self, group: dist.ProcessGroup | None, writable: bool, alone: bool,
                 stored_shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        super().__init__(group, writable, alone)
        self._stored_shapes = stored_shapes or {}

    def shards(self, name: str, value: _Boxes) -> list[Shard]:
        """One for each box that has elements; a load reads what is wanted twice once."""
        boxes = value.wanted_boxes() if self._writable else value.write_boxes()
        shape = tuple(self._stored_shapes.get(name, value.size()))
        cropped = [box.inside(shape) for box in boxes] if name in self._stored_shapes else boxes
        return [Shard(self._memory(name, box), shape, ((tuple(box.offsets), tuple(box.sizes)),))
                for box in cropped if 0 not in box.sizes]

    def _memory(self, name: str, box: TensorBox) -> torch.Tensor:
        if self._writable and _is_float8(box.view):
            raise NotDescribed(name)
        return self._on_host(name, box.view)


class ShardedState(FlatState):
    """The state of one rank. Streams of bytes are archives of objects already; a load puts what it finds in their places.

    Args:
        archives, trusted, allow_types: of a load, as for FlatState.
    """

    def __init__(self, tree: Mapping[str, Any], leaves: ShardLeaves, rank: int, *, writable: bool = False,
                 archives: Archives | None = None, trusted: bool = False, allow_types: Sequence[Any] = ()) -> None:
        self._shard_leaves = leaves
        super().__init__(tree, leaves, writable=writable, rank=rank, archives=archives, trusted=trusted, allow_types=allow_types)

    def _tensor(self, where: str, value: Any, joined: bytes, text: bytes) -> None:
        if not isinstance(value, _Boxes):
            super()._tensor(where, value, joined, text)
            return
        shards = self._shard_leaves.shards(where, value)
        if len(shards) > 1:
            self._mapping = _together()
        for number, shard in enumerate(shards):
            part = f"{_PART}{number}".encode() if len(shards) > 1 else b""
            self._add_shard(joined + part, text, shard)

    def _content(self, entry: ObjectEntry) -> tuple[bytes, str]:
        if isinstance(entry.value, io.BytesIO):
            return entry.value.getvalue(), ARCHIVE
        return super()._content(entry)
