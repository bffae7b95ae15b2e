# SPDX-License-Identifier: Apache-2.0
"""Items of torch.distributed.checkpoint for a storage writer whose planner and index are somebody else's.

    places, result = write_items({"w": tensor}, folder, f"__{rank}_0.{generation}.distcp")      # each rank
    write_digests(folder, metadata_bytes, results_of_all_ranks)                                 # who makes .metadata
"""
from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from .. import _log, _options
from .. import context as contexts
from .._library import native
from .._options import SaveOptions
from ..checkpoint import path_argument
from ..context import Context
from ..state import State, Stateful
from ..storage import handle_of as storage_handle
from ._leaves import LeafConverter

_STORED_TYPE = b"application/x-torch-save"


def write_items(state: Mapping[Any, Any] | State | Stateful, path: Any, name: str, *,
                archives: Mapping[str, Any] | None = None, storage: Any = None, objects: str = "json",
                context: Context | None = None, **options: Unpack[SaveOptions]) -> tuple[list[tuple[str, int, int]], bytes]:
    """Writes all of a state into a new file of items; no other rank takes part, and nothing refers to the file yet.

    Args:
        state: as for save; the name of an entry is its key in the index.
        path: the directory; it is made where it is not there.
        name: `__R_K.GENERATION.distcp` of rank R, its K-th file; 32 lower-case hex digits of a generation that all ranks
            agree on and nobody has used before.
        archives: byte objects that are archives of torch.save already, by name: anything with the buffer protocol.
        storage, objects, context, options: as for save; durability, digests, file_mode, threads, memory_budget and
            deadline count.
    Returns (name, offset, length) of each item in the file, tensors with several shards once for each in their order; and
    bytes for write_digests. Raises AlreadyExistsError for a file that is there, UnimplementedError for dtypes that torch
    has not; after a failure nothing of the file is left.
    """
    leaves = LeafConverter(None, False)
    made = state if isinstance(state, State) else State(state, objects=objects, convert=leaves.convert, parts=leaves.parts)
    made.check_can_be_saved()
    if archives:
        native.shw_state_add_objects(made._handle, {
            "count": len(archives), "names": [key.encode() for key in archives], "data": list(archives.values()),
            "content_types": [_STORED_TYPE] * len(archives), "paths": [b""] * len(archives)})
    try:
        places, result = native.shw_torch_items_write(
            (context or contexts.shared("calls"))._handle, made._handle, storage_handle(storage),
            path_argument(path, storage), name, _options.save_options(options))
    finally:
        _log.drain()
    tensors = native.shw_state_tensor_count(made._handle)
    found = []
    for entry, offset, length in struct.iter_unpack("=QQQ", places):
        text = (native.shw_state_tensor_name(made._handle, entry) if entry < tensors
                else native.shw_state_object_name(made._handle, entry - tensors))
        found.append((text, offset, length))
    return found, result


def write_digests(path: Any, index: Any, results: Iterable[bytes], *, storage: Any = None,
                  context: Context | None = None, **options: Unpack[SaveOptions]) -> None:
    """Puts the digests of an index beside it, before or after `.metadata` itself is put in place.

    Args:
        path: the directory.
        index: the exact bytes that `.metadata` has or is going to have.
        results: what write_items gave, of all ranks and files; at least one.
        storage, context, options: as for save; durability counts.
    Raises InvalidArgumentError for results of several generations, DataLossError for bytes that are no index.
    """
    native.shw_torch_digests_write((context or contexts.shared("calls"))._handle, storage_handle(storage),
                                   path_argument(path, storage), index, list(results), _options.save_options(options))
