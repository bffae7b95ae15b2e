# SPDX-License-Identifier: Apache-2.0
"""What a leaf of a sharded state dict is, by its shape and not by its class: objects of megatron-core count as ours.

Asked once per type. The classes are mutable as the originals are; a thread must not change a descriptor while another
one plans with it.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_TENSOR_FIELDS = {"key", "data", "dtype", "local_shape", "global_shape", "global_offset", "axis_fragmentations"}
_OBJECT_FIELDS = {"key", "data", "global_shape", "global_offset", "replica_id"}
_FACTORY_FIELDS = {"key", "data", "build_fn", "merge_fn"}


_kinds: dict[type, str] = {}


def _kind(value: Any) -> str:
    """"tensor", "object", "factory", "local" or ""."""
    cls = type(value)
    found = _kinds.get(cls)
    if found is None:
        found = _kinds[cls] = _examine(cls)
    return found


def _examine(cls: type) -> str:
    fields = set(getattr(cls, "__dataclass_fields__", ()))
    if fields >= _TENSOR_FIELDS:
        return "tensor"
    if fields >= _FACTORY_FIELDS:
        return "factory"
    if fields >= _OBJECT_FIELDS and hasattr(cls, "unique_key"):
        return "object"
    return "local" if any(base.__name__ == "LocalNonpersistentObject" for base in cls.__mro__) else ""


def is_sharded_tensor(value: Any) -> bool:
    """True for a ShardedTensor of ours or of megatron-core."""
    return _kind(value) == "tensor"


def is_sharded_object(value: Any) -> bool:
    """True for a ShardedObject."""
    return _kind(value) == "object"


def is_factory(value: Any) -> bool:
    """True for a ShardedTensorFactory."""
    return _kind(value) == "factory"


def is_nonpersistent(value: Any) -> bool:
    """True for a LocalNonpersistentObject."""
    return _kind(value) == "local"


def is_sharded_base(value: Any) -> bool:
    """True for tensors, objects and factories: what the original calls ShardedBase."""
    return _kind(value) in ("tensor", "object", "factory")


def flat_range_of(tensor: Any) -> slice | None:
    """The flattened range of a ShardedTensor; releases without flattened ranges have no such field."""
    found: slice | None = getattr(tensor, "flattened_range", None)
    return found


def is_main_replica(replica_id: int | Iterable[int]) -> bool:
    """Whether the holder with this replica id saves: the integer 0, or nothing but zeros. The empty tuple is main."""
    if isinstance(replica_id, int):
        return replica_id == 0
    return all(part == 0 for part in replica_id)
