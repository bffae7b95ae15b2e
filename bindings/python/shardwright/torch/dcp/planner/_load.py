# SPDX-License-Identifier: Apache-2.0
"""DefaultLoadPlanner: torch's load planner with proof that what is wanted is filled, and reports of what torch is silent
about. Methods may be overridden as torch documents it.
"""
from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint import default_planner as original
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, ReadItem
from torch.distributed.tensor import DTensor

from ...._pickles import DamagedPickle, UnsafePickle, refusal
from ... import _stored_objects
from ..._library import native as torch_native
from . import _boxes
from ._errors import DamagedObjectError, InvalidPlanError, MissingKeyError, PlanCheckError, UntrustedObjectError
from ._meta import flatten_sharded_tensors, materialise_meta_tensors
from ._nested import Path, flatten_state_dict, set_element
from ._proof import Row, check_doubtful, check_filled, unfilled, wanted_boxes
from ._read_items import Block, FilledReads, PackedReads
from ._values import find_object, global_size, is_whole_tensor, wanted_chunks

logger = logging.getLogger(__name__)
_BATCH_CHUNKS_MAX = 2**18  # chunks that are described at once: what bounds the memory of planning


def _object_item(fqn: str) -> ReadItem:
    nothing = torch.Size((0,))
    return ReadItem(type=LoadItemType.BYTE_IO, dest_index=MetadataIndex(fqn), dest_offsets=nothing,
                    storage_index=MetadataIndex(fqn), storage_offsets=nothing, lengths=nothing)


def create_read_items(fqn: str, stored: Any, value: Any, strict: bool = False) -> list[ReadItem]:
    """Reads for one value of a state: one for a byte object, one per intersection of wanted boxes and chunks for a
    tensor. With `strict`, UnfilledError where the checkpoint lacks a part of it, or holds one in several chunks that are not
    equal."""
    if isinstance(stored, BytesStorageMetadata):
        return [_object_item(fqn)]
    wanted = wanted_chunks(fqn, value, type(stored))
    items = _boxes.create_read_items_for_chunk_list(fqn, stored, wanted)
    if strict:
        check_filled((fqn, stored.size, stored.chunks, wanted), items)
    return items


# ---- all values of a state together ----

def _rows_of(state_dict: Mapping[str, Any], metadata: Metadata, strict: bool) -> Iterator[Row]:
    """What is wanted of each value and what is stored of it, in the order of the state."""
    for fqn, value in state_dict.items():
        stored = metadata.state_dict_metadata.get(fqn)
        if stored is None:
            if strict:
                raise MissingKeyError(f"Missing key in checkpoint state_dict: {fqn}.", {"tensor": fqn})
            continue
        if isinstance(stored, TensorStorageMetadata) and getattr(value, "size", None) is not None:
            size = global_size(value)
            if stored.size != size:
                raise InvalidPlanError(f"Size mismatch between saved {stored.size} and current: {size} for {fqn}",
                                       {"tensor": fqn})
        if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
            continue
        if isinstance(stored, BytesStorageMetadata):
            yield fqn, None, None, None
        else:
            wanted = None if is_whole_tensor(value) else wanted_chunks(fqn, value, type(stored))
            yield fqn, stored.size, stored.chunks, wanted


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch, chunks = [], 0
    for row in rows:
        batch.append(row)
        chunks += len(row[2] or ())
        if chunks >= _BATCH_CHUNKS_MAX:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _reads_by_pairs(rows: Iterable[Row], strict: bool) -> list[ReadItem]:
    found: list[ReadItem] = []
    for row in rows:
        fqn, size, saved, _ = row
        if size is None:
            found.append(_object_item(fqn))
            continue
        items = _boxes.reads_by_pairs(fqn, saved, wanted_boxes(row))
        if strict:
            check_filled(row, items)
        found += items
    return found


def _planned_reads(rows: list[Row], strict: bool) -> list[ReadItem]:
    """The reads of all rows, by the engine where it can hold them."""
    blocks: list[Block] = []
    for batch in _batches(rows):
        found = torch_native.reads_plan(batch)
        if found is None:
            return FilledReads(_reads_by_pairs(rows, strict))
        names, count, values, hole, doubtful = found
        if strict and hole is not None:
            row, box, volume = hole
            raise unfilled(batch[row][0], wanted_boxes(batch[row])[box], volume)
        if strict:
            check_doubtful([batch[row] for row in doubtful])
        blocks.append((names, count, values))
    return PackedReads(blocks)


def create_default_local_load_plan(state_dict: Mapping[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What one rank reads to fill its state. The items are made when somebody looks at them.

    Args:
        state_dict: flat names to tensors and objects.
        metadata: of the checkpoint.
        strict: False skips names that the checkpoint lacks and parts of tensors that it lacks.
    Raises MissingKeyError (a RuntimeError), InvalidPlanError (a ValueError) for shapes that differ and for objects where
    the checkpoint has a tensor, UnfilledError (a ValueError).
    """
    return LoadPlan(_planned_reads(list(_rows_of(state_dict, metadata, strict)), strict))


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: loading needs no agreement."""
    return all_plans


class DefaultLoadPlanner(original.DefaultLoadPlanner):
    """Plans a load in the place of torch's DefaultLoadPlanner. It is one by type, for hosts that ask; every method is its own.

    Args:
        flatten_state_dict, flatten_sharded_tensors: as for saving.
        allow_partial_load: names of the state that the checkpoint lacks keep their values.
        trust_pickles: stored objects may run code of the checkpoint. Without it, what torch reads as weights
            (`weights_only`) and built-in, standard and numpy types that run nothing come back, and everything else is an
            UntrustedObjectError.
        allow_types: classes (and functions) of the program that stored objects may use, too: enumerations, dataclasses. Their
            constructors and `__setstate__` run with what the checkpoint holds.

    Attributes: `missing_keys` of the state (partial loads), `unexpected_keys` of the checkpoint, and `casts`, name to
    (stored dtype, dtype of the state), set by create_local_plan.
    """

    original_state_dict: dict[str, Any]
    mappings: dict[str, Path]

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 allow_partial_load: bool = False, *, trust_pickles: bool = False,
                 allow_types: Iterable[Any] = ()) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.trust_pickles = trust_pickles
        self.allow_types = list(allow_types)
        self.original_state_dict = {}
        self.mappings = {}
        self.missing_keys: list[str] = []
        self.unexpected_keys: list[str] = []
        self.casts: dict[str, tuple[torch.dtype, torch.dtype]] = {}

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Takes the state dict that is filled; tensors on the meta device get memory, all else stays as it is."""
        materialise_meta_tensors(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_sharded_tensors:
            state_dict = flatten_sharded_tensors(state_dict)
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """What this rank reads. The keys of checkpoints of torch 2.3 and before are tried where others are missing."""
        if self.metadata is None:
            raise PlanCheckError("self.metadata is not None: set_up_planner was given none")
        if self.flatten_state_dict:
            self._take_old_keys(self.metadata.state_dict_metadata)
        plan = create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)
        self._report(self.metadata.state_dict_metadata)
        return plan

    def _take_old_keys(self, stored: Mapping[str, Any]) -> None:
        absent = stored.keys() - self.state_dict.keys()
        if not absent:
            return
        state_dict, mappings = flatten_state_dict(self.original_state_dict, "2.3")
        if not absent.isdisjoint(state_dict):
            self.state_dict, self.mappings = state_dict, mappings

    def _report(self, stored: Mapping[str, Any]) -> None:
        self.missing_keys = [name for name in self.state_dict if name not in stored]
        self.unexpected_keys = [name for name in stored if name not in self.state_dict]
        self.casts = {}
        for name, value in self.state_dict.items():
            found = stored.get(name)
            if isinstance(value, torch.Tensor) and isinstance(found, TensorStorageMetadata):
                if value.dtype != found.properties.dtype:
                    self.casts[name] = (found.properties.dtype, value.dtype)
        if self.casts:
            shown = ", ".join(f"{name}: {a} to {b}" for name, (a, b) in list(self.casts.items())[:8])
            logger.warning("%d tensors are cast while they are loaded: %s", len(self.casts), shown)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Puts a stored object into the caller's containers."""
        fqn = read_item.dest_index.fqn
        found = self._object_of(fqn, value)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[fqn], found)
            return
        self.state_dict[fqn] = found
        if fqn in self.original_state_dict:
            self.original_state_dict[fqn] = found

    def _allowed_types(self) -> list[Any]:
        """Classes and functions that stored objects may use beside the known ones."""
        return self.allow_types

    def _object_of(self, fqn: str, value: io.BytesIO) -> Any:
        try:
            return _stored_objects.read(value, self.trust_pickles, self._allowed_types())
        except UnsafePickle as e:
            raise refusal(fqn, e, "trust_pickles", UntrustedObjectError) from e
        except DamagedPickle as e:
            raise DamagedObjectError(f"the object {fqn} cannot be read: {e}", {"tensor": fqn}) from e

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        """The memory that an item fills."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        """Nothing: the memory of resolve_tensor is that of the state."""

    def lookup_tensor(self, index: MetadataIndex) -> torch.Tensor:
        """The tensor part that an index names. InvalidPlanError (a ValueError) where there is none."""
        found: torch.Tensor = find_object(self.state_dict, index)
        return found

    def transform_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> torch.Tensor:
        """The view of a tensor part that an item fills."""
        for dim, (start, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths, strict=True)):
            if length != tensor.size(dim):
                tensor = tensor.narrow(dim, start, length)
        return tensor


class EmptyStateDictLoadPlanner(DefaultLoadPlanner, original._EmptyStateDictLoadPlanner):
    """Fills an empty dict with what a checkpoint holds, on the host; for one process.

    Args:
        keys: names, or dotted prefixes of the paths of names, that are wanted; None = all.
        others: as for DefaultLoadPlanner.
    """

    def __init__(self, keys: set[str] | None = None, *arguments: Any, **options: Any) -> None:
        self.keys = keys
        super().__init__(*arguments, **options)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        path = (metadata.planner_data or {}).get(key) or (key,)
        return any(".".join(map(str, path[:end])) in self.keys for end in range(1, len(path) + 1))

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Makes room for the wanted entries in `state_dict`, which must be empty. PlanCheckError (an AssertionError)."""
        if state_dict:
            raise PlanCheckError("not state_dict: it must be empty, it is rebuilt from the checkpoint")
        if metadata is None:
            raise PlanCheckError("metadata is not None: set_up_planner was given none")
        paths, wanted = metadata.planner_data or {}, set[str]()
        for key, stored in metadata.state_dict_metadata.items():
            if not self._should_include_key(key, metadata):
                continue
            room = (torch.empty(stored.size, dtype=stored.properties.dtype)
                    if isinstance(stored, TensorStorageMetadata) else stored)
            wanted.add(key)
            set_element(state_dict, paths.get(key, (key,)), room)
        super().set_up_planner(state_dict, metadata, is_coordinator)
        # A list of which only later positions are wanted is filled up with entries that are not stored under these names.
        self.state_dict = {key: value for key, value in self.state_dict.items() if key in wanted}
