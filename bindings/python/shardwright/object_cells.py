# SPDX-License-Identifier: Apache-2.0
"""Byte objects that are cells of a grid, as Megatron Core has objects of its shards."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._library import native


@dataclass(frozen=True)
class ObjectKey:
    """What the name of such an object says, as in "key/shard_0.3_1.8".

    `key` is what all cells share, `index` the cell, `shape` the extents of the grid; the last extent is -1 where older
    names leave it out.
    """

    key: str
    index: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def parse(cls, name: str) -> ObjectKey:
        """Takes a name apart; the last "/shard_" counts, so any key comes back. Raises InvalidArgumentError for another
        name."""
        key, index, shape = native.shw_py_object_key_parse(name.encode())
        return cls(key.decode(), index, shape)

    def name(self) -> str:
        """The name of the object. Raises InvalidArgumentError for a cell outside the grid."""
        made: bytes = native.shw_py_object_key(self.key.encode(), tuple(self.index), tuple(self.shape))
        return made.decode()


@dataclass(frozen=True)
class ObjectCell:
    """A leaf of a state that is a cell of a grid of objects; a load puts the stored value in its place.

    Its name in the state is ObjectKey(name, index, shape).name(), and it is flat; without axes it is a plain object, as it
    would be without this class. `value` is bytes, a JSON value, or what the state pickles. A `replica` is filled by loads;
    another rank saves it. `kind` is "auto", "replicated", "sharded" or "rank_local".
    """

    value: Any
    index: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    replica: bool = False
    kind: str = "auto"
