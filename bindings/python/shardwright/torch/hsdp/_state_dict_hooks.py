# SPDX-License-Identifier: Apache-2.0
"""State dicts of modules, also of those around them: always of shards, and filled from DTensors, parts of this rank or whole
tensors."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from ...errors import InvalidArgumentError
from .._ragged import RaggedTensor
from ._dtensors import dtensor_of
from ._parameters import ManagedParameter
from ._placement import part_of
from ._unit import TorchUnit


def install_state_dict_hooks(module: nn.Module, unit: TorchUnit) -> None:
    """Of one module of a unit."""
    module.register_state_dict_pre_hook(lambda *_: unit.reshard())  # type: ignore[no-untyped-call]
    module.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
        lambda _, values, prefix, *__: _convert(module, unit, values, prefix))


def _convert(module: nn.Module, unit: TorchUnit, values: dict[str, Any], prefix: str) -> None:
    unit.reshard()
    paths = {each: path for path, each in module.named_modules()}
    for param in unit.params:
        for owner, attribute in param.owners:
            path = paths.get(owner)
            key = None if path is None else f"{prefix}{path}.{attribute}" if path else f"{prefix}{attribute}"
            if key in values:
                values[key] = _value_for(key, param, values[key])


def _value_for(name: str, param: ManagedParameter, value: Any) -> Any:
    """The value as a DTensor like the shard, where the shard lies."""
    target: Any = param.sharded
    if isinstance(value, torch.Tensor) and not value.is_meta and value.device != param.home:
        value = value.to(param.home) if not isinstance(value, DTensor) else dtensor_of(
            value._local_tensor.to(param.home), value.device_mesh, value.placements, value.shape, value.stride())
    if isinstance(target, RaggedTensor) and isinstance(value, torch.Tensor):
        return _ragged_for(name, target, value)
    if not isinstance(target, DTensor) or not isinstance(value, torch.Tensor):
        return value
    if isinstance(value, RaggedTensor):
        raise InvalidArgumentError(f"{name}: a RaggedTensor for a DTensor of {target.placements}: give full_tensor() of it",
                                   {"parameter": name})
    if isinstance(value, DTensor):
        if value.shape == target.shape and value.placements == target.placements and value.device_mesh == target.device_mesh:
            return value
        if value.shape == target.shape and _is_whole(value):
            return _like(target, _part_of(target, value._local_tensor))
        raise InvalidArgumentError(f"{name}: a DTensor of shape {tuple(value.shape)}, {value.placements} on {value.device_mesh} "
                                   f"for one of {tuple(target.shape)}, {target.placements} on {target.device_mesh}: "
                                   "redistribute it, or give the whole tensor", {"parameter": name})
    return _like(target, _local_of(name, target, value))


def _ragged_for(name: str, target: RaggedTensor, value: torch.Tensor) -> RaggedTensor:
    """The value as a RaggedTensor like the target."""
    if isinstance(value, RaggedTensor) and value.is_cut_as(target):
        return value
    if isinstance(value, DTensor) and _is_whole(value):
        value = value._local_tensor
    if isinstance(value, (DTensor, RaggedTensor)):
        raise InvalidArgumentError(f"{name}: a {type(value).__name__} of shape {tuple(value.shape)}, of which this rank has other rows than "
                                   f"{target.rows}: give the whole tensor", {"parameter": name})
    if value.shape == target.shape:
        return target.like(target.part_of(value))
    if value.shape == target.to_local().shape:
        return target.like(value)
    raise _wrong_shape(name, target, value)


def _is_whole(value: DTensor) -> bool:
    """Whether this rank has all of it."""
    return all(placement.is_replicate() or (placement.is_shard() and value.device_mesh.size(axis) == 1)
               for axis, placement in enumerate(value.placements))


def _like(target: DTensor, local: torch.Tensor) -> DTensor:
    return dtensor_of(local, target.device_mesh, target.placements, target.shape, target.stride())


def _local_of(name: str, target: DTensor, value: torch.Tensor) -> torch.Tensor:
    if value.shape == target.shape:
        return _part_of(target, value)
    if value.shape == target._local_tensor.shape:
        return value
    raise _wrong_shape(name, target, value)


def _wrong_shape(name: str, target: DTensor | RaggedTensor, value: torch.Tensor) -> InvalidArgumentError:
    return InvalidArgumentError(f"{name}: a tensor of shape {tuple(value.shape)} for a parameter of {tuple(target.shape)}, of which "
                                f"this rank has {tuple(target._local_tensor.shape)}", {"parameter": name})


def _part_of(target: DTensor, whole: torch.Tensor) -> torch.Tensor:
    """What this rank has of a whole tensor."""
    part = whole
    # A strided cut is made of the parts that the others leave.
    for axis, placement in sorted(enumerate(target.placements), key=lambda each: isinstance(each[1], _StridedShard)):
        if isinstance(placement, (Shard, _StridedShard)):
            size, rank = target.device_mesh.size(axis), target.device_mesh.get_local_rank(axis)
            part = part_of(part, placement.dim, size, rank)
    return part
