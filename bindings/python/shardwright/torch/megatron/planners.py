# SPDX-License-Identifier: Apache-2.0
"""Megatron's planners: torch's planners with what Megatron adds to them.

Usable in torch's own save and load and in megatron-core's strategies. Entries are single tensors, byte streams and
values of mcore_to_pyt_state_dict or of the original's conversion.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, ReadItem, SavePlan, WriteItem
from torch.distributed.tensor import DTensor

from ..dcp.planner import PlanItems
from ..dcp.planner._cache import KnownPlan
from ..dcp.planner._items import untouched
from . import _reuse
from ._allowed_types import allowed_types
from ._base_planners import DefaultLoadPlanner, DefaultSavePlanner
from ._flattened_entries import FlattenedRequest, flattened_shapes, refuse_unexplained
from .checkpointable import CroppedRequest
from .errors import PlannerStateError, failure, missing_key, other_shape, require, stored_as_object


class MCoreSavePlanner(DefaultSavePlanner):
    """Saves every byte stream on every rank, and can plan without the coordinator.

    With enable_plan_caching a rank whose entries are described as before sends digests. Content decides, so a new or
    changed key is never lost. Ranks that plan without the coordinator send whole plans, and the coordinator merges them
    once.

    Args:
        dedup_replicated_tensors: must not be set with can_run_decentralized_global_plan.
        can_run_decentralized_global_plan: every rank may take its local plan as its global plan; needs
            flatten_state_dict=False.
        args, kwargs: those of DefaultSavePlanner.
    Raises:
        PlannerStateError: the options exclude each other. It is an AssertionError, too.
    """

    def __init__(self, *args: Any, dedup_replicated_tensors: bool | None = None,
                 can_run_decentralized_global_plan: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own_plan: SavePlan | None = None  # what this planner made of the state that it was set up for
        self._received: list[SavePlan] = []  # of all ranks, during a global step
        self.can_run_decentralized_global_plan = can_run_decentralized_global_plan
        if can_run_decentralized_global_plan:
            _refuse(bool(dedup_replicated_tensors), "Cannot run decentralized plan with dedup_replicated_tensors=True")
            _refuse(self.flatten_state_dict, "Cannot run decentralized plan with flatten_state_dict=True")

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        """Takes the state dict; nothing is copied but the containers."""
        super().set_up_planner(state_dict, storage_meta, is_coordinator)
        self._own_plan = None

    def create_local_plan(self) -> SavePlan:
        """Items of all entries. ShardingAssertionError for a DTensor, which is no part of Megatron's states."""
        for name, value in self.state_dict.items():
            require(not isinstance(value, DTensor), f"{name} is a DTensor", key=name)
        plan: SavePlan = super().create_local_plan()
        self._own_plan = self.plan
        return plan

    def _planner_data(self) -> Any:
        return super()._planner_data() if self.flatten_state_dict else {}

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What every rank writes, and the metadata.

        In plans of ranks that may do without the coordinator, digests and items that are plan buffers become items in
        `all_plans`: Megatron stores these plans with the metadata, where others must be able to read them.
        """
        found: tuple[list[SavePlan], Metadata] = super().create_global_plan(all_plans)
        received, self._received = self._received, []
        if self.can_run_decentralized_global_plan and isinstance(all_plans, list):
            all_plans[:] = [dataclasses.replace(plan, items=_listed(plan.items)) for plan in received]
        return found

    def _gathered(self, plans: list[SavePlan]) -> None:
        super()._gathered(plans)
        self._received = plans

    def create_decentralized_global_plan(self, local_plan: SavePlan) -> SavePlan:
        """The plan of this rank without an exchange: `local_plan` as it is, or what it is the digest of.

        Raises:
            PlannerStateError: the planner flattens state dicts, or the plan carries planner data.
        """
        _refuse(self.flatten_state_dict, "Cannot run decentralized plan with flatten_state_dict=True")
        if self._own_plan is not None and not local_plan.usable and isinstance(local_plan.planner_data, KnownPlan):
            local_plan = dataclasses.replace(self._own_plan, storage_data=local_plan.storage_data)
        _refuse(bool(local_plan.planner_data), "Planner data should be empty with decentralized plan")
        self._local_key = None  # no coordinator answers, so none is known to have understood a digest
        return local_plan

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """What this rank writes.

        A plan that a host kept from an earlier save, as Megatron does with `cached_metadata`, is taken while the state is
        described as it was then: names, shapes, places, dtypes. A subclass that describes states without the base class's
        create_local_plan is not asked.

        Raises:
            ChangedStateError: the plan is an earlier save's, and what this rank holds has changed since.
        """
        plan: SavePlan = super().finish_plan(new_plan)
        if self._own_plan is not None:
            _reuse.remember(plan, self._own_plan)
        else:
            _reuse.check(plan, self._plans_now())
        return plan

    def _plans_now(self) -> list[SavePlan]:
        """What create_local_plan would say, which nobody called for this state: in the base class, and as an override
        changes that. Empty where it never gets to the base class."""
        caching, plan = self._enable_plan_caching, self.plan
        self._enable_plan_caching = False
        try:
            made = self.create_local_plan()
        finally:
            self._enable_plan_caching, self.plan = caching, plan
        own, self._own_plan = self._own_plan, None
        return [] if own is None else [own] if made is own else [own, made]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The object as it is: byte streams are serialised already."""
        return object


class MCoreLoadPlanner(DefaultLoadPlanner):
    """Checks global shapes before anything is read, and crops or pads tensors whose shapes may differ.

    Entries that Megatron up to 0.14 stored flattened are read by their ranges of elements.

    Args:
        shapes_validation_sharded_tensors: requested tensors whose stored shape must be the global shape.
        allow_shape_mismatch_sharded_tensors: requested tensors by key whose stored shape may differ: both begin at the
            origin, what the stored tensor lacks is left as it is.
        args, kwargs: those of DefaultLoadPlanner.
    """

    def __init__(self, *args: Any, shapes_validation_sharded_tensors: Iterable[Any] = (),
                 allow_shape_mismatch_sharded_tensors: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shapes_validation_sharded_tensors = shapes_validation_sharded_tensors
        self.allow_shape_mismatch_sharded_tensors = allow_shape_mismatch_sharded_tensors
        self._staged: dict[int, tuple[ReadItem, torch.Tensor]] = {}
        self._flattened: dict[str, FlattenedRequest] = {}

    def create_local_plan(self) -> LoadPlan:
        """The reads of this rank.

        Raises:
            MissingKeyError: a requested tensor is not stored; a KeyError, names up to five similar keys.
            ShardingError: a stored shape differs where it must not; a CheckpointingException.
        """
        metadata = _given(self.metadata)
        self._validate_global_shapes(metadata, self.shapes_validation_sharded_tensors)
        flattened = flattened_shapes(metadata)
        whole, self._flattened = self.state_dict, {
            name: FlattenedRequest(name, self.state_dict[name], _stored_tensor(metadata, name), shape)
            for name, shape in flattened.items() if name in self.state_dict}
        flexible = (name for name in self.allow_shape_mismatch_sharded_tensors or {} if name not in flattened)
        for name, tensor in (self.allow_shape_mismatch_sharded_tensors or {}).items():
            if name in whole and name not in flattened:
                refuse_unexplained(name, _stored_tensor(metadata, name).size, tensor.global_shape)
        cropped = {name: CroppedRequest(whole[name], _stored_tensor(metadata, name))
                   for name in flexible if name in whole}
        self.state_dict = {**whole, **cropped, **self._flattened}
        try:
            plan: LoadPlan = super().create_local_plan()
        finally:
            self.state_dict = whole
        return plan

    def _validate_global_shapes(self, metadata: Metadata, sharded_tensors: Iterable[Any]) -> None:
        """Under the name of the original's, because code that plans otherwise calls it."""
        flattened = flattened_shapes(metadata)
        for tensor in sharded_tensors:
            size = flattened.get(tensor.key, _stored_tensor(metadata, tensor.key).size)
            if tuple(size) != tuple(tensor.global_shape):
                refuse_unexplained(tensor.key, size, tensor.global_shape)
                raise other_shape(tensor.key, size, tensor.global_shape)

    def _allowed_types(self) -> list[Any]:
        """What Megatron allows is allowed, too."""
        return [*self.allow_types, *allowed_types()]

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        """Where an item is read to: a place of its own until its commit for ranges of flattened entries, and a
        contiguous copy for a quantised tensor that is not contiguous."""
        if read_item.dest_index.fqn in self._flattened:
            request = self._flattened[read_item.dest_index.fqn]
            return torch.empty(read_item.lengths, dtype=request.dtype, device=request.device)
        target: torch.Tensor = super().resolve_tensor(read_item)
        if _is_float8(target) and not target.is_contiguous():
            self._staged[id(read_item)] = (read_item, target)
            target = type(target).make_like(target, data=target._data.contiguous())  # type: ignore[attr-defined]
        return target

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        """Takes what was read; items may be resolved and committed in any order and from several threads."""
        request = self._flattened.get(read_item.dest_index.fqn)
        if request is not None:
            request.accept(read_item.dest_index.index or 0, read_item.dest_offsets[-1], tensor)
            return
        staged = self._staged.pop(id(read_item), None)
        if staged is not None:
            staged[1].copy_(tensor)
            tensor = staged[1]
        super().commit_tensor(read_item, tensor)


def _listed(items: list[WriteItem]) -> list[WriteItem]:
    """Items in a plain list; a plan buffer stays one."""
    found = untouched(items)
    return list(items if found is None else PlanItems(*found))


def _refuse(condition: bool, message: str) -> None:
    if condition:
        raise failure(PlannerStateError, message)


def _given(metadata: Metadata | None) -> Metadata:
    if metadata is None:
        raise failure(PlannerStateError, "set_up_planner comes first, with the metadata of the checkpoint")
    return metadata


def _stored_tensor(metadata: Metadata, key: str) -> TensorStorageMetadata:
    stored = metadata.state_dict_metadata.get(key)
    if stored is None:
        raise missing_key(key, list(metadata.state_dict_metadata))
    if not isinstance(stored, TensorStorageMetadata):
        raise stored_as_object(key)
    return stored


def _is_float8(tensor: torch.Tensor) -> bool:
    """True for Transformer Engine's quantised tensors, which have no copy into a part that is not contiguous."""
    return any(kind.__name__ == "Float8Tensor" for kind in type(tensor).__mro__)
