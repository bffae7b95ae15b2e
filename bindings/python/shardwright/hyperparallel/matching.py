# SPDX-License-Identifier: Apache-2.0
"""Read items: intersections of what a rank wants with the chunks that are stored."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import engine
from .columns import Columns, ColumnsBuilder, one_tensor
from .items import Chunks, LoadItems, MetadataEntries, properties_text
from .model import ChunkStorageMetadata, ReadItem, TensorStorageMetadata, dtype_code

_ANY_DTYPE = "uint8"  # of a tensor whose chunks are looked at by themselves


def stored_entries(metadata: Mapping[str, Any]) -> MetadataEntries:
    """Entries of a checkpoint over a plan buffer; its own where the metadata is still that of a planner.

    Raises InvalidArgumentError for a dtype that is not known, OutsideTensorError for a chunk outside its tensor.
    """
    if isinstance(metadata, MetadataEntries):
        return metadata
    builder = ColumnsBuilder()
    for name, entry in metadata.items():
        if not hasattr(entry, "chunks"):
            builder.object(name)
            continue
        row = builder.tensor(name, dtype_code(entry.properties.dtype), _integers(entry.size),
                             attribute=properties_text(entry.properties))
        for chunk in entry.chunks:
            builder.add(row, (_integers(chunk.offsets), _integers(chunk.sizes)), number=0)
    return MetadataEntries(engine.describe_stored(builder.build()))


def match(stored: MetadataEntries, wanted: Columns, renamed: Mapping[str, str], *, proof: bool) -> LoadItems:
    """Read items of wanted boxes, by the names of stored entries: wanted box outer, chunk inner.

    Args:
        renamed: names in the state, where they differ.
        proof: each wanted element comes from exactly one chunk, of equal chunks from the first; else all intersections.
    Raises InvalidArgumentError naming the hole or overlap.
    """
    return LoadItems(wanted, engine.match(stored.buffer, wanted, proof=proof), None, stored, renamed)


def create_read_items_for_chunk_list(fqn: str, checkpoint_md: TensorStorageMetadata,
                                     local_chunks: Sequence[ChunkStorageMetadata]) -> list[ReadItem]:
    """Read items of one tensor: local chunk outer, stored chunk inner, each non-empty intersection one item.

    Args:
        fqn: name of the tensor.
        checkpoint_md: what is stored; equal chunks give an item each, and nothing is said about holes.
        local_chunks: what is wanted. Indexes of items number both lists from 0.
    """
    if not len(local_chunks) or not len(checkpoint_md.chunks):
        return []
    size, chunks = _integers(checkpoint_md.size), checkpoint_md.chunks
    if isinstance(chunks, Chunks):
        stored = chunks.entries
        name, code = stored.columns.names[chunks.entry], stored.columns.dtypes[chunks.entry]
    else:
        name, code = fqn, dtype_code(_ANY_DTYPE)
        stored = MetadataEntries(engine.describe_stored(one_tensor(name, code, size, chunks, stored=True)))
    return list(match(stored, one_tensor(name, code, size, local_chunks, stored=False), {name: fqn},
                      proof=False))


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
