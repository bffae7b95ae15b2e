# SPDX-License-Identifier: Apache-2.0
"""ShardedObject: any value as one cell of a grid of values; LocalNonpersistentObject: a value that is never stored."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...errors import InvalidArgumentError
from .errors import ShardingError, failure
from .sharded_tensor import ReplicaId, ShardedBase

_SHARD_MARK = "/shard_"


@dataclass
class ShardedObject(ShardedBase):
    """A value at `global_offset` of a grid with the extents `global_shape`. The grid of a load must be that of the
    save.

    Attributes:
        key: name of the whole grid.
        data: the value, or None in a description.
        global_shape, global_offset: in cells. () is a grid of one cell.
        replica_id: see is_main_replica.
    """

    key: str
    data: Any
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]
    replica_id: ReplicaId = 0

    def __post_init__(self) -> None:
        self.validate_metadata_integrity()

    def __str__(self) -> str:
        return f"{type(self).__name__}(key={self.key!r})"

    def validate_metadata_integrity(self) -> None:
        """Raises ShardingError when shape and offset have different lengths."""
        if len(self.global_shape) != len(self.global_offset):
            counts = f"{len(self.global_shape)} extents and {len(self.global_offset)} offsets"
            raise failure(ShardingError, f"{self} has {counts}", key=self.key)

    def without_data(self) -> ShardedObject:
        """A copy whose `data` is None."""
        return replace(self, data=None)

    @property
    def unique_key(self) -> str:
        """Name of this cell, also in files: KEY/shard_OFFSET_SHAPE with "." between the numbers."""
        offset, shape = (".".join(map(str, numbers)) for numbers in (self.global_offset, self.global_shape))
        return f"{self.key}{_SHARD_MARK}{offset}_{shape}"

    @classmethod
    def empty_from_unique_key(cls, unique_key: str, replica_id: ReplicaId = 0) -> ShardedObject:
        """The description of which `unique_key` is the name. Any key comes back, with "/" in it, too, and so does ().

        Names of old checkpoints lack the last extent; it becomes -1.

        Raises:
            InvalidArgumentError: this is no such name.
        """
        key, mark, numbers = unique_key.rpartition(_SHARD_MARK)
        try:
            offset, shape = (tuple(map(int, part.split("."))) if part else () for part in numbers.split("_"))
        except ValueError:
            mark = ""
        if not mark:
            raise InvalidArgumentError(f"{unique_key!r} is not KEY{_SHARD_MARK}OFFSET_SHAPE", {"key": unique_key})
        if len(shape) + 1 == len(offset):
            shape += (-1,)
        return cls(key, None, shape, offset, replica_id)


class LocalNonpersistentObject:
    """A value of a state dict that a save leaves out and a load puts back unchanged."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def unwrap(self) -> Any:
        """The value."""
        return self.obj
