# SPDX-License-Identifier: Apache-2.0
"""Sequences and mappings over plan buffers: items of plans and entries of metadata, made when somebody looks at them.

They compare with lists and dicts by value, cannot be changed, and pickle as their buffer. Objects that a save plan
carries stay in the process that made it.
"""
from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

from ..planning import NOT_KEPT
from . import engine
from .columns import Columns, Matches, slice_of
from .model import (BytesStorageMetadata, ChunkStorageMetadata, LoadItemType, MetadataIndex, ReadItem, TensorProperties,
                    TensorStorageMetadata, WriteItem, WriteItemType)

_Item = TypeVar("_Item")
_SEPARATOR = "\x00"
_SHOWN_MAX = 8


def properties_text(properties: Any) -> bytes:
    """Properties of a tensor as the bytes that its entry carries."""
    text = str(properties.dtype)
    if properties.requires_grad or properties.memory_format is not None:
        text += f"{_SEPARATOR}{int(bool(properties.requires_grad))}{_SEPARATOR}{properties.memory_format or ''}"
    return text.encode("utf-8")


def properties_of(attribute: bytes) -> TensorProperties:
    """The properties that properties_text wrote."""
    dtype, *rest = bytes(attribute).decode("utf-8").split(_SEPARATOR)
    return TensorProperties(dtype, rest[0] == "1", rest[1] or None) if rest else TensorProperties(dtype)


class _View(Sequence[_Item]):
    """Sequence whose items are made on access; equal to any sequence of equal items."""

    __hash__ = None  # type: ignore[assignment]

    def _item(self, position: int) -> _Item:
        raise NotImplementedError

    @overload
    def __getitem__(self, position: int) -> _Item: ...

    @overload
    def __getitem__(self, position: slice) -> list[_Item]: ...

    def __getitem__(self, position: int | slice) -> _Item | list[_Item]:
        chosen = range(len(self))[position]
        return [self._item(index) for index in chosen] if isinstance(chosen, range) else self._item(chosen)

    def __iter__(self) -> Iterator[_Item]:
        return map(self._item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({list(self)!r})" if len(self) <= _SHOWN_MAX else f"<{name}: {len(self)} items>"


class SaveItems(_View[WriteItem]):
    """Write items of a plan buffer.

    Args:
        buffer: a local plan.
        objects: values of objects by name, for `bytes_io_data`; they are not pickled.
        numbers: uint32 per box of the plan as `planning.merge` gives them; only what is kept is shown. None = all of it.
        numbered: indexes carry the number of the chunk.
    """

    def __init__(self, buffer: bytes, objects: Mapping[str, Any] | None = None, numbers: Any = None,
                 numbered: bool = False) -> None:
        self.buffer = buffer
        self.objects = {} if objects is None else objects
        self.numbers = None if numbers is None else bytes(numbers)
        self.numbered = numbered

    @cached_property
    def columns(self) -> Columns:
        """The entries of the buffer."""
        return engine.read(self.buffer)

    @cached_property
    def _number_of_box(self) -> Sequence[int]:
        return memoryview(self.numbers or b"").cast("I")

    @cached_property
    def _boxes(self) -> Sequence[int]:
        """The box of each item."""
        columns = self.columns
        listed = [columns.box_of_item(position) for position in range(columns.box_count)]
        return listed if self.numbers is None else [box for box in listed if self._number_of_box[box] != NOT_KEPT]

    def __len__(self) -> int:
        return len(self._boxes)

    def _index(self, box: int, entry: int) -> MetadataIndex:
        return MetadataIndex(self.columns.names[entry], self.columns.box(box, entry)[0],
                             self._number_of_box[box] if self.numbered else None)

    def _item(self, position: int) -> WriteItem:
        columns = self.columns
        box = self._boxes[position]
        entry = columns.entry_of_box(box)
        name = columns.names[entry]
        if columns.is_object(entry):
            return WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, None, self.objects.get(name))
        offsets, sizes = columns.box(box, entry)
        data = {"chunk": ChunkStorageMetadata(offsets, sizes), "properties": properties_of(columns.attribute(entry)),
                "size": columns.shape(entry)}
        return WriteItem(self._index(box, entry), WriteItemType.TENSOR, data)

    def tensor_indexes(self) -> Iterator[MetadataIndex]:
        """Indexes of the items that are tensors, in order."""
        columns = self.columns
        for box in self._boxes:
            entry = columns.entry_of_box(box)
            if not columns.is_object(entry):
                yield self._index(box, entry)

    def __reduce__(self) -> Any:
        return SaveItems, (self.buffer, None, self.numbers, self.numbered)


class Chunks(_View[ChunkStorageMetadata]):
    """Chunks of one stored tensor in the order of their numbers; pickled as a list."""

    def __init__(self, entries: MetadataEntries, entry: int) -> None:
        self.entries = entries
        self.entry = entry
        self._boxes = entries.columns.boxes(entry)

    def __len__(self) -> int:
        return len(self._boxes)

    def _item(self, position: int) -> ChunkStorageMetadata:
        return ChunkStorageMetadata(*self.entries.columns.box(self._boxes[position], self.entry))

    def __reduce__(self) -> Any:
        return list, (list(self),)


class MetadataEntries(Mapping[str, TensorStorageMetadata | BytesStorageMetadata]):
    """Entries of a merged plan by name: objects in the order in which they were listed, then tensors."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer

    @cached_property
    def columns(self) -> Columns:
        """The entries of the buffer."""
        return engine.read(self.buffer)

    @cached_property
    def _places(self) -> dict[str, int]:
        columns = self.columns
        listed = list(columns.entries_in_order())
        chosen = [e for e in listed if columns.is_object(e)] + [e for e in listed if not columns.is_object(e)]
        return {columns.names[entry]: entry for entry in chosen}

    def __getitem__(self, name: str) -> TensorStorageMetadata | BytesStorageMetadata:
        entry = self._places[name]
        columns = self.columns
        if columns.is_object(entry):
            return BytesStorageMetadata()
        return TensorStorageMetadata(properties_of(columns.attribute(entry)), columns.shape(entry), Chunks(self, entry))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def entry_of(self, name: str) -> int:
        """Number of an entry in the columns. KeyError."""
        return self._places[name]

    def __repr__(self) -> str:
        if len(self) <= _SHOWN_MAX:
            return f"MetadataEntries({dict(self)!r})"
        return f"<MetadataEntries: {len(self)} entries>"

    def __reduce__(self) -> Any:
        return MetadataEntries, (self.buffer,)


class LoadItems(_View[ReadItem]):
    """Read items of matches between wanted boxes and stored chunks.

    Args:
        wanted: the wanted boxes, under the names of the stored entries.
        matches: what engine.match gave for them.
        chunk_begins: offsets of the chunk of each match, back to back; None = taken from `stored` when looked at.
        stored: entries of the checkpoint.
        renamed: names in the state of entries that are stored under another name.
    """

    def __init__(self, wanted: Columns, matches: Matches, chunk_begins: Sequence[int] | None,
                 stored: MetadataEntries | None = None, renamed: Mapping[str, str] | None = None) -> None:
        self._wanted = wanted
        self._matches = matches
        self._given_begins = chunk_begins
        self._stored = stored
        self._renamed = {} if renamed is None else dict(renamed)

    @cached_property
    def _value_begins(self) -> Sequence[int]:
        """Position of the first value of each entry's matches."""
        begins, position = array("q"), 0
        for entry in range(len(self._wanted.names)):
            begins.append(position)
            count = self._matches.entry_begins[entry + 1] - self._matches.entry_begins[entry]
            position += count * self._wanted.dimension_count(entry)
        return begins

    @cached_property
    def _chunk_begins(self) -> Sequence[int]:
        if self._given_begins is not None or self._stored is None:
            return self._given_begins or ()
        begins = array("q")
        for entry, name in enumerate(self._wanted.names):
            if self._wanted.is_object(entry):
                continue
            place, columns = self._stored.entry_of(name), self._stored.columns
            first = columns.box_ranges[place]
            for match in range(self._matches.entry_begins[entry], self._matches.entry_begins[entry + 1]):
                begins.extend(columns.box(first + self._matches.chunks[match], place)[0])
        return begins

    def __len__(self) -> int:
        return self._matches.entry_begins[-1]

    def _item(self, position: int) -> ReadItem:
        wanted, matches = self._wanted, self._matches
        entry = bisect_right(matches.entry_begins, position) - 1
        name = wanted.names[entry]
        shown = self._renamed.get(name, name)
        if wanted.is_object(entry):
            return ReadItem(LoadItemType.BYTE_IO, MetadataIndex(shown), (0,), MetadataIndex(name), (0,), (0,))
        ndim, box = wanted.dimension_count(entry), matches.boxes[position]
        begin = self._value_begins[entry] + (position - matches.entry_begins[entry]) * ndim
        return ReadItem(
            LoadItemType.TENSOR,
            MetadataIndex(shown, wanted.box(box, entry)[0], box - wanted.box_ranges[entry]),
            slice_of(matches.wanted_offsets, begin, ndim),
            MetadataIndex(name, slice_of(self._chunk_begins, begin, ndim), matches.chunks[position]),
            slice_of(matches.chunk_offsets, begin, ndim), slice_of(matches.sizes, begin, ndim))

    def __reduce__(self) -> Any:
        buffer = engine.describe_held(self._wanted)
        columns = [array(code, values).tobytes() for code, values in zip("QQqqqQq", (
            self._matches.boxes, self._matches.chunks, self._matches.wanted_offsets, self._matches.chunk_offsets,
            self._matches.sizes, self._matches.entry_begins, self._chunk_begins), strict=True)]
        return _load_items, (buffer, columns, self._renamed)


def _load_items(buffer: bytes, columns: list[bytes], renamed: dict[str, str]) -> LoadItems:
    boxes, chunks, wanted, stored, sizes, begins, chunk_begins = (
        array(code, data) for code, data in zip("QQqqqQq", columns, strict=True))
    return LoadItems(engine.read(buffer), Matches(boxes, chunks, wanted, stored, sizes, begins), chunk_begins, None,
                     renamed)
