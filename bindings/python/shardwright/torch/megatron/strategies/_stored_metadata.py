# SPDX-License-Identifier: Apache-2.0
"""What an index says, as a request, and removals from it. Nothing that is stored is run."""
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, TensorStorageMetadata

from ....checkpoint import remove_entries
from ....errors import NotFoundError
from .._directory import Directory
from .._flattened_entries import flattened_shapes
from ..sharded_object import ShardedObject
from ..sharded_tensor import ShardedTensor

_DATA = ".distcp"


def read_metadata(directory: str | Path) -> Any:
    """torch's Metadata of a directory, with what Megatron adds to it."""
    return Directory(directory).reader.read_metadata()


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
    """Removes entries, where there are files for them, and the files that no entry lies in any more."""
    files = Directory(directory)
    if not any(name.endswith(_DATA) and name.startswith(prefix) for name in files.names()):
        warnings.warn(f'There are no files in {files.path} that begin with "{prefix}". Skipping removal. '
                      "shardwright.remove_entries takes entries out of files with other names, too.", stacklevel=3)
        return
    place = files.reader.place
    try:
        remove_entries(place.path, prefix, storage=place.storage, apply=True)
    except NotFoundError as e:
        if e.details.get("parameter") != "prefix":
            raise
        warnings.warn(f'There are no entries in {files.path} that begin with "{prefix}". Skipping removal.', stacklevel=3)
