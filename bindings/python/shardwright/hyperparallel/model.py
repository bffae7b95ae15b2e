# SPDX-License-Identifier: Apache-2.0
"""Data classes of plans and metadata, with the fields, order, defaults and equality of HyperParallel 0.1.0.

An object of HyperParallel's class of the same name with equal fields is equal and has the same hash, so that plans and
metadata of either package meet in one dict. All numbers are plain integers.
"""
from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .. import tensor

_PEER_PACKAGE = "hyper_parallel."
_Class = TypeVar("_Class", bound=type)


def _is_peer(own: type, other: type) -> bool:
    """True for the same class, and for HyperParallel's class of that name."""
    return own is other or (own.__name__ == other.__name__ and other.__module__.startswith(_PEER_PACKAGE))


def _equal_to_peers(cls: _Class) -> _Class:
    """Equality of a data class by its fields, peers included."""
    names = tuple(item.name for item in dataclasses.fields(cls))

    def equal(self: Any, other: Any) -> Any:
        if not _is_peer(type(self), type(other)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    cls.__eq__ = equal  # type: ignore[assignment,method-assign]
    return cls


class _ItemType(enum.Enum):
    """Kinds of items; HyperParallel's member of the same name is equal."""

    def __eq__(self, other: object) -> Any:
        if not _is_peer(type(self), type(other)):
            return NotImplemented
        return self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash(self.name)


class WriteItemType(_ItemType):
    """What a write item stores: a box of a tensor, or an object."""

    TENSOR = "tensor"
    BYTE_IO = "byte_io"


class LoadItemType(_ItemType):
    """What a read item reads."""

    TENSOR = "tensor"
    BYTE_IO = "byte_io"


@_equal_to_peers
@dataclass(frozen=True)
class MetadataIndex:
    """Identity of one saved piece: name, offset of its box (empty for objects), number of the chunk in its tensor (None
    before the global plan, and for objects). All three take part in equality and hash."""

    fqn: str
    offset: tuple[int, ...] = ()
    index: int | None = None


@_equal_to_peers
@dataclass(frozen=True)
class ChunkStorageMetadata:
    """A box in global coordinates, in elements."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


@_equal_to_peers
@dataclass(frozen=True)
class TensorProperties:
    """dtype as the framework prints it ("torch.float32", "Float32", "float32"); the planner fills nothing else."""

    dtype: str
    requires_grad: bool = False
    memory_format: str | None = None


@_equal_to_peers
@dataclass
class BytesStorageMetadata:
    """Marks an entry that is no tensor."""


@_equal_to_peers
@dataclass(frozen=True)
class TensorStorageMetadata:
    """A stored tensor: properties, global shape, chunks in the order of their numbers."""

    properties: TensorProperties
    size: tuple[int, ...]
    chunks: Sequence[ChunkStorageMetadata] = field(default_factory=list)


@_equal_to_peers
@dataclass
class StorageInfo:
    """Where a piece lies; `offset` and `length` in bytes, length -1 = not known."""

    relative_path: str
    offset: int
    length: int


@_equal_to_peers
@dataclass
class WriteResult:
    """What a storage has written for one item."""

    index: MetadataIndex
    storage_data: StorageInfo


@_equal_to_peers
@dataclass
class Metadata:
    """Description of a checkpoint: each name's entry, and where a storage put the pieces."""

    state_dict_metadata: Mapping[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: dict[MetadataIndex, StorageInfo] | None = None
    version: str = "1.0"


@_equal_to_peers
@dataclass(frozen=True)
class WriteItem:
    """One piece to write. `tensor_data` has the keys chunk, properties and size; bytes of tensors are not in the item.

    `bytes_io_data` of an object is the object itself in a local plan, and the encoded bytes after finalize_plan. It
    does not travel when a plan is pickled.
    """

    index: MetadataIndex
    type: WriteItemType
    tensor_data: dict[str, Any] | None = None
    bytes_io_data: Any = None

    def tensor_storage_size(self) -> int | None:
        """Bytes of the chunk, None for objects. InvalidArgumentError for a dtype that is not known."""
        if self.type != WriteItemType.TENSOR or not self.tensor_data:
            return None
        chunk, properties = self.tensor_data.get("chunk"), self.tensor_data.get("properties")
        if chunk is None or properties is None:
            return None
        elements = 1
        for extent in chunk.sizes:
            elements *= int(extent)
        return (elements * dtype_bits(properties.dtype) + 7) // 8


@_equal_to_peers
@dataclass(frozen=True)
class ReadItem:
    """One rectangular copy: offsets are relative to the destination's box and to the stored chunk; elements."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: tuple[int, ...]
    storage_index: MetadataIndex
    storage_offsets: tuple[int, ...]
    lengths: tuple[int, ...]


@_equal_to_peers
@dataclass
class SavePlan:
    """What one rank writes. `items` is a sequence; the planner's own is a view over a plan buffer."""

    items: Sequence[WriteItem] = field(default_factory=list)
    storage_data: Any = None
    planner_data: Any = None


@_equal_to_peers
@dataclass
class LoadPlan:
    """What one rank reads."""

    items: Sequence[ReadItem] = field(default_factory=list)
    storage_data: Any = None
    planner_data: Any = None


_numbers: dict[str, int] = {}


def dtype_code(text: str) -> int:
    """Number of a dtype by the text that a framework prints for it. InvalidArgumentError when there is none."""
    number = _numbers.get(text)
    if number is None:
        number = tensor.dtype_number(text.rpartition(".")[2].lower())
        _numbers[text] = number
    return number


def dtype_bits(text: str) -> int:
    """Bits of one element."""
    return tensor.dtype_bits(dtype_code(text))
