# SPDX-License-Identifier: Apache-2.0
"""An open checkpoint as torch's load sees it: metadata, items, archives."""
from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlanner, ReadItem

from ...checkpoint import Checkpoint, StoredTensor
from .planner import InvalidPlanError, MissingKeyError

_ARCHIVE = "application/x-torch-save"
_PAIRS, _HALVES = torch.float4_e2m1fn_x2, "float4_e2m1fn"


def metadata_of(checkpoint: Checkpoint) -> Metadata:
    """Metadata of a checkpoint of any format; it has no places, as items are found by their names."""
    found: dict[str, Any] = {}
    paths: dict[str, tuple[Any, ...]] = {}
    for tensor in checkpoint.tensors():
        dtype = _dtype(tensor.name, tensor.dtype)
        chunks = [ChunkStorageMetadata(_extents(c.offsets, dtype), _extents(c.sizes, dtype)) for c in tensor.chunks()]
        found[tensor.name] = TensorStorageMetadata(TensorProperties(dtype=dtype), _extents(tensor.shape, dtype), chunks)
        paths[tensor.name] = path_of(tensor.path)
    for entry in checkpoint.info()["objects"]:
        found[entry["name"]] = BytesStorageMetadata()
        paths[entry["name"]] = path_of(json.loads(entry["path"]) if entry["path"] else [entry["name"]])
    return Metadata(found, planner_data=paths, storage_data={})


def path_of(parts: Iterable[Any]) -> tuple[Any, ...]:
    """A nested path as torch has it: text for keys, numbers for positions in lists."""
    return tuple(part[0] if isinstance(part, list) else str(part) for part in parts)


def _extents(extents: Iterable[int], dtype: torch.dtype) -> torch.Size:
    """As torch counts them: pairs of elements of half a byte."""
    found = list(extents)
    return torch.Size([*found[:-1], found[-1] // 2]) if dtype == _PAIRS else torch.Size(found)


def _dtype(name: str, dtype: str) -> torch.dtype:
    found = _PAIRS if dtype == _HALVES else getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype):
        raise InvalidPlanError(f"{name} has the dtype {dtype}, which torch does not have", {"tensor": name})
    return found


def has_transforms(places: Mapping[Any, Any], items: Iterable[ReadItem]) -> bool:
    """Whether items went through a stream transform when they were written."""
    return any(getattr(place, "transform_descriptors", None) for place in places.values()) and any(
        getattr(places.get(item.storage_index), "transform_descriptors", None) for item in items)


def archive_of(checkpoint: Checkpoint, name: str) -> io.BytesIO:
    """A stored object as torch.save writes it."""
    if checkpoint.object_content_type(name) == _ARCHIVE:
        return io.BytesIO(checkpoint.open_object(name).read())
    stream = io.BytesIO()
    torch.save(checkpoint.object(name), stream)
    stream.seek(0)
    return stream


def fill(checkpoint: Checkpoint, item: ReadItem, planner: LoadPlanner) -> tuple[ReadItem, torch.Tensor]:
    """Reads one item into the memory that the planner has for it: straight, where that can be."""
    name, begin = item.storage_index.fqn, item.storage_index.offset
    if name not in checkpoint:
        raise MissingKeyError(f"Missing key in checkpoint state_dict: {name}.", {"tensor": name})
    stored = checkpoint.tensor(name)
    target = planner.resolve_tensor(item).detach()
    if tuple(target.shape) != tuple(item.lengths):
        raise InvalidPlanError(f"req {item.storage_index} mismatch sizes {target.size()} vs {torch.Size(item.lengths)}",
                               {"tensor": name})
    offsets = [a + b for a, b in zip(begin or (), item.storage_offsets, strict=False)]
    dtype = _dtype(name, stored.dtype)
    if target.dtype == dtype != _PAIRS and target.device.type == "cpu" and type(target) is torch.Tensor:
        stored.read(offsets, tuple(item.lengths), out=target)
        return item, target
    if dtype == _PAIRS:
        _fill_pairs(stored, offsets, item.lengths, target)
        return item, target
    read = torch.empty(tuple(item.lengths), dtype=dtype)
    stored.read(offsets, tuple(item.lengths), out=read)
    target.copy_(read)
    return item, target


def _fill_pairs(stored: StoredTensor, offsets: list[int], lengths: Iterable[int], target: torch.Tensor) -> None:
    """Bytes as they are: torch converts no elements of half a byte."""
    sizes = list(lengths)
    if target.dtype != _PAIRS:
        raise InvalidPlanError(f"{stored.name} is stored as {_PAIRS} and wanted as {target.dtype}", {"tensor": stored.name})
    if 0 in sizes:
        return
    read = stored.read([*offsets[:-1], 2 * offsets[-1]], [*sizes[:-1], 2 * sizes[-1]])
    target.view(torch.uint8).copy_(torch.frombuffer(bytearray(read.raw()), dtype=torch.uint8).reshape(sizes))
