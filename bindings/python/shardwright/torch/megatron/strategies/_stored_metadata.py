# SPDX-License-Identifier: Apache-2.0
"""What an index says, as a request, and an index without some of its entries. Nothing that is stored is run."""
from __future__ import annotations

import copy
import io
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, TensorStorageMetadata

from ....errors import NotFoundError
from ...dcp import _choice, _metadata_file
from .._directory import Directory, location_of
from .._flattened_entries import flattened_shapes
from ..integrity import MANIFEST, save_integrity_manifest
from ..sharded_object import ShardedObject
from ..sharded_tensor import ShardedTensor

_INDEX, _DATA = ".metadata", ".distcp"


def read_metadata(directory: str | Path) -> Any:
    """torch's Metadata of a directory, with what Megatron adds to it."""
    return _choice.storage_of(None, location_of(directory), reader=True).read_metadata()


def tensors_metadata(metadata: Any) -> dict[str, Any]:
    """A ShardedTensor without data for each stored tensor."""
    whole = flattened_shapes(metadata)
    return {key: _unsharded(key, stored, whole.get(key, stored.size))
            for key, stored in metadata.state_dict_metadata.items() if isinstance(stored, TensorStorageMetadata)}


def _unsharded(key: str, stored: Any, shape: Any) -> Any:
    return ShardedTensor.from_rank_offsets(key, torch.empty(tuple(shape), dtype=stored.properties.dtype, device="meta")).without_data()


def sharded_metadata(metadata: Any) -> dict[str, Any]:
    """The same, and a ShardedObject without data for each stored object."""
    found: dict[str, Any] = {}
    for name, stored in metadata.state_dict_metadata.items():
        if isinstance(stored, BytesStorageMetadata):
            sharded = ShardedObject.empty_from_unique_key(name)
            found[sharded.unique_key] = sharded
    return found | tensors_metadata(metadata)


def remove_prefix(directory: str | Path, prefix: str) -> None:
    """Removes entries and, once the index without them is durable, the files that no entry lies in any more."""
    files = Directory(directory)
    named = [name for name in files.names() if name.endswith(_DATA) and name.startswith(prefix)]
    if not named:
        warnings.warn(f'There are no files in {files.path} that begin with "{prefix}". Skipping removal.', stacklevel=3)
        return
    content = files.read(_INDEX)
    if content is None:
        raise NotFoundError(f"{files.path}/{_INDEX} is missing: {files.path} holds no whole checkpoint",
                            {"path": f"{files.path}/{_INDEX}"})
    kept = _without(_metadata_file.read(io.BytesIO(content)), prefix)
    data = io.BytesIO()
    _metadata_file.write(kept, data)
    has_manifest = files.version(MANIFEST) is not None
    files.remove(MANIFEST)
    files.replace(_INDEX, data.getbuffer())
    used = {place.relative_path for place in (kept.storage_data or {}).values()}
    for name in named:
        if name not in used:
            files.remove(name)
    if has_manifest:
        save_integrity_manifest(files.path)


def _without(metadata: Any, prefix: str) -> Any:
    """The same but for the entries of the prefix. Plans of ranks, which Megatron keeps to compare, describe what is no more."""
    kept = copy.copy(metadata)
    kept.__dict__.pop("all_local_plans", None)
    for field in ("state_dict_metadata", "planner_data", "mcore_data"):
        entries = getattr(metadata, field, None)
        if isinstance(entries, dict):
            setattr(kept, field, {name: entry for name, entry in entries.items() if not name.startswith(prefix)})
    if metadata.storage_data is not None:
        kept.storage_data = {at: place for at, place in metadata.storage_data.items() if not at.fqn.startswith(prefix)}
    return kept
