# SPDX-License-Identifier: Apache-2.0
"""Entries of a plan in flat columns, as the planning calls of the library take and give them.

A tensor has one box per chunk or piece, an object one box without dimensions. Boxes are numbered through all entries in
their order; `order` lists them as the host listed its items. Values of box b of an entry with n dimensions lie at
value_begins[entry] + (b - first box of the entry) * n, n values long.
"""
from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from ..errors import InvalidArgumentError
from ..layout import Box

DIGEST_BYTES = 16
NO_DIGEST = bytes(DIGEST_BYTES)
OBJECT = 0  # dtype of an entry that is no tensor


@dataclass
class Columns:
    """Flat columns of entries; read them through the methods. Offsets columns have one value more than there are
    entries."""

    names: Sequence[str]
    dtypes: Sequence[int]
    shapes: Sequence[int]
    shape_offsets: Sequence[int]
    box_ranges: Sequence[int]
    box_offsets: Sequence[int]
    box_sizes: Sequence[int]
    numbers: Sequence[int] | None = None
    order: Sequence[int] | None = None
    object_sizes: Sequence[int] | None = None
    paths: Sequence[str] | None = None
    attributes: Sequence[bytes] | None = None
    digests: bytes | None = None

    @cached_property
    def value_begins(self) -> Sequence[int]:
        """Position of the first box value of each entry."""
        begins, position = array("q"), 0
        for entry in range(len(self.names)):
            begins.append(position)
            position += self.dimension_count(entry) * (self.box_ranges[entry + 1] - self.box_ranges[entry])
        return begins

    @property
    def box_count(self) -> int:
        """Number of boxes of all entries."""
        return self.box_ranges[-1]

    def dimension_count(self, entry: int) -> int:
        """Dimensions of a tensor."""
        return self.shape_offsets[entry + 1] - self.shape_offsets[entry]

    def is_object(self, entry: int) -> bool:
        """True when the entry is no tensor."""
        return self.dtypes[entry] == OBJECT

    def shape(self, entry: int) -> tuple[int, ...]:
        """Global shape of a tensor."""
        return tuple(self.shapes[self.shape_offsets[entry]:self.shape_offsets[entry + 1]])

    def box(self, box: int, entry: int) -> Box:
        """Offsets and sizes of a box (by its number through all entries) of an entry."""
        ndim = self.dimension_count(entry)
        begin = self.value_begins[entry] + (box - self.box_ranges[entry]) * ndim
        return tuple(self.box_offsets[begin:begin + ndim]), tuple(self.box_sizes[begin:begin + ndim])

    def boxes(self, entry: int) -> range:
        """Numbers of an entry's boxes."""
        return range(self.box_ranges[entry], self.box_ranges[entry + 1])

    def box_of_item(self, item: int) -> int:
        """Box that the host listed at this place."""
        return item if self.order is None else self.order[item]

    def entry_of_box(self, box: int) -> int:
        """Entry that a box belongs to."""
        return bisect_right(self.box_ranges, box) - 1

    def attribute(self, entry: int) -> bytes:
        """The host's own bytes of an entry."""
        return b"" if self.attributes is None else self.attributes[entry]

    def path(self, entry: int) -> str:
        """Nested path as JSON text, "" at the top."""
        return "" if self.paths is None else self.paths[entry]

    def entries_in_order(self) -> Iterator[int]:
        """Entries by the first item that names them."""
        if self.order is None:
            yield from range(len(self.names))
            return
        seen: set[int] = set()
        for box in self.order:
            entry = self.entry_of_box(box)
            if entry not in seen:
                seen.add(entry)
                yield entry


@dataclass
class ColumnsBuilder:
    """Collects entries; `build` gives the columns. Boxes of one entry may come at several times."""

    rows: dict[str, _Row] = field(default_factory=dict)
    items: list[tuple[_Row, int]] = field(default_factory=list)

    def tensor(self, name: str, dtype: int, shape: tuple[int, ...], *, attribute: bytes = b"", path: str = "",
               digest: bytes = NO_DIGEST) -> _Row:
        """The row of a tensor, to which boxes are added. InvalidArgumentError when it is there with another dtype or
        shape."""
        row = self.rows.setdefault(name, _Row(name, dtype, shape, attribute, path, digest, 0))
        if (row.dtype, row.shape, row.attribute) != (dtype, shape, attribute):
            raise InvalidArgumentError(f"{name} is in the plan twice, with different dtype or shape: {row.attribute!r} "
                                       f"of {row.shape} and {attribute!r} of {shape}", {"tensor": name})
        return row

    def object(self, name: str, size: int = 0, *, attribute: bytes = b"", path: str = "",
               digest: bytes = NO_DIGEST) -> _Row:
        """Adds an object, which has one item; `size` in bytes, 0 = not known. InvalidArgumentError when the name is
        taken."""
        if name in self.rows:
            raise InvalidArgumentError(f"{name} is in the plan twice", {"tensor": name})
        row = self.rows.setdefault(name, _Row(name, OBJECT, (), attribute, path, digest, size))
        self.add(row, ((), ()))
        return row

    def add(self, row: _Row, box: Box, number: int | None = None) -> None:
        """Adds a box of a row as the next item; `number` None = the next one of the row."""
        self.items.append((row, len(row.boxes)))
        row.numbers.append(len(row.boxes) if number is None else number)
        row.boxes.append(box)

    def build(self) -> Columns:
        """All that was added."""
        rows = list(self.rows.values())
        ranges = array("Q", _sums(len(row.boxes) for row in rows))
        first = {id(row): begin for row, begin in zip(rows, ranges, strict=False)}
        order = array("Q", (first[id(row)] + box for row, box in self.items))
        boxes = [box for row in rows for box in row.boxes]
        return Columns(
            names=[row.name for row in rows], dtypes=array("i", (row.dtype for row in rows)),
            shapes=array("q", (extent for row in rows for extent in row.shape)),
            shape_offsets=array("Q", _sums(len(row.shape) for row in rows)), box_ranges=ranges,
            box_offsets=array("q", (value for offsets, _ in boxes for value in offsets)),
            box_sizes=array("q", (value for _, sizes in boxes for value in sizes)),
            numbers=array("Q", (number for row in rows for number in row.numbers)),
            order=None if list(order) == list(range(len(order))) else order,
            object_sizes=array("Q", (row.object_size for row in rows)),
            paths=[row.path for row in rows] if any(row.path for row in rows) else None,
            attributes=[row.attribute for row in rows],
            digests=b"".join(row.digest for row in rows) if any(row.digest != NO_DIGEST for row in rows) else None)


@dataclass
class _Row:
    name: str
    dtype: int
    shape: tuple[int, ...]
    attribute: bytes
    path: str
    digest: bytes
    object_size: int
    boxes: list[Box] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def one_tensor(name: str, dtype: int, shape: tuple[int, ...], chunks: Sequence[Any], *,
               stored: bool) -> Columns:
    """Columns of one tensor with these chunks in their order; of stored chunks the number is the rank that wrote
    them."""
    for chunk in chunks:
        if not len(chunk.offsets) == len(chunk.sizes) == len(shape):
            raise InvalidArgumentError(f"{name}: chunk {chunk} does not have the dimensions of shape {shape}",
                                       {"tensor": name})
    return Columns(
        names=[name], dtypes=array("i", [dtype]), shapes=array("q", shape), shape_offsets=array("Q", [0, len(shape)]),
        box_ranges=array("Q", [0, len(chunks)]),
        box_offsets=array("q", chain.from_iterable(chunk.offsets for chunk in chunks)),
        box_sizes=array("q", chain.from_iterable(chunk.sizes for chunk in chunks)),
        numbers=array("Q", bytes(8 * len(chunks))) if stored else None)


@dataclass
class Matches:
    """Intersections of wanted boxes with chunks, in the order of the wanted entries.

    Columns: number of the wanted box (through all entries), number of the chunk in its tensor, begin inside the wanted
    box, begin inside the chunk, sizes (ndim values per match, back to back), first match of each entry and the end.
    """

    boxes: Sequence[int]
    chunks: Sequence[int]
    wanted_offsets: Sequence[int]
    chunk_offsets: Sequence[int]
    sizes: Sequence[int]
    entry_begins: Sequence[int]


def _sums(counts: Iterable[int]) -> Iterator[int]:
    total = 0
    yield total
    for count in counts:
        total += count
        yield total


def slice_of(values: Sequence[int], begin: int, count: int) -> tuple[Any, ...]:
    """`count` values from `begin` on."""
    return tuple(values[begin:begin + count])
