# SPDX-License-Identifier: Apache-2.0
"""fully_shard: makes a module, or a list of modules, a unit."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import DataParallelMeshDims

from ...errors import InvalidArgumentError
from ...hsdp import Mesh
from ._context import ContextOptions
from ._hooks import forward_method, install
from ._parameters import ManagedParameter, PlacementFn, is_sharded, managed_parameters, move_buffers
from ._placement import place_of
from ._state import ModuleState, remember, state_of
from ._state_dict_hooks import install_state_dict_hooks
from ._unit import TorchUnit
from .module import HSDPModule
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

ModuleT = TypeVar("ModuleT", bound="nn.Module | list[nn.Module]")
_classes: dict[type, type] = {}


def fully_shard(module: ModuleT, *, mesh: DeviceMesh | Mesh | None = None,
                reshard_after_forward: bool | int | None = None, dp_mesh_dims: DataParallelMeshDims | None = None,
                shard_placement_fn: PlacementFn | None = None, mp_policy: MixedPrecisionPolicy | None = None,
                offload_policy: OffloadPolicy | None = None, ignored_params: set[nn.Parameter] | None = None,
                device: torch.device | str | None = None, replicate_params: set[nn.Parameter] | None = None,
                comm_fusion: bool = True, layout: str = "row", prefetch_depth: int = 1, threshold: int = 0,
                timeout: float | None = None) -> ModuleT:
    """Makes the parameters below a module, or below several, that no inner call has taken, one unit: sharded between uses,
    gathered before forward and backward, their gradients summed over all ranks. Call it on inner modules first. Returns the
    module, whose class is `HSDP<Class>` afterwards.

    Args:
        mesh: a DeviceMesh of the CPU or of GPUs with one axis (shards) or two (replicas, shards); None = one axis over all ranks. A
            shardwright.hsdp.Mesh stands for the DeviceMesh of its ranks; its communicators are not used.
        dp_mesh_dims: names of the axes of a larger mesh that shard and that replicate; several of a kind count as one axis.
        reshard_after_forward: True frees parameters after forward; False keeps them for backward; None = True, but not for the
            root, nor for the unit that ran last in the forward before; n: each rank keeps 1/n of them (n divides the shard axis; 1 =
            False, its size = True).
        shard_placement_fn: gives a Shard for each parameter, or None for Shard(0), or a Shard and the mesh over which this parameter is
            sharded and its gradient averaged. Only the first dimension may be uneven.
        mp_policy: dtypes, None = as stored.
        offload_policy: CPUOffloadPolicy: shards and their gradients lie in memory of the host; or None.
        ignored_params: not sharded, not moved and not touched.
        device: where units live: of the kind that the mesh is of, "cuda:1" = the GPU of that number. None = the kind of the mesh, of
            GPUs torch's current one; without a mesh GPUs where there are some and the default process group has NCCL, else the CPU.
        replicate_params: whole on each rank, gradients summed over all.
        comm_fusion: False: one gather and one reduction for each parameter, in place of one for all.
        layout: "row", as FSDP2 cuts, or "ragged": all parameters are one range of rows that is cut evenly, so that gradients and
            gathered parameters need no copies. They are then RaggedTensors, no DTensors.
        prefetch_depth: units that are gathered ahead; 0 none. The root's counts.
        threshold: bytes below which a parameter stays whole on each rank.
        timeout: seconds of each collective, None = 1,800. The root's counts.
    Parameters and buffers but DTensors are moved to where units live. Raises InvalidArgumentError (a ValueError) naming the module or parameter,
    NotImplementedError for what is not there, UnavailableError naming what is missing to use a GPU.
    """
    modules = _checked_modules(module)
    place = place_of(mesh, dp_mesh_dims, None if device is None else torch.device(device))
    policy = mp_policy if mp_policy is not None else MixedPrecisionPolicy()
    offloads = isinstance(offload_policy, CPUOffloadPolicy)
    _check_options(policy, offload_policy, layout)
    if not isinstance(comm_fusion, bool):
        raise InvalidArgumentError(f"comm_fusion is {comm_fusion!r}; it must be True or False")
    _check_numbers(prefetch_depth=prefetch_depth, threshold=threshold)
    resharding = _policy_of(reshard_after_forward, place.shard_size)
    params = managed_parameters(modules, place, taken=_is_taken, ignored=set(ignored_params or ()),
                                replicated=set(replicate_params or ()), threshold=threshold, placement_fn=shard_placement_fn,
                                policy=policy, ragged=layout == "ragged", fused=comm_fusion, offloads=offloads)
    _check_policy(resharding, params)
    move_buffers(modules, place.device.device, _is_taken)
    unit = TorchUnit(modules, params, place, policy, resharding, comm_fusion, layout, offloads)
    for each in modules:
        state = ModuleState(each, unit, ContextOptions(timeout, prefetch_depth))
        remember(each, state)
        install(each, state)
        install_state_dict_hooks(each, unit)
        each.__class__ = _class_of(type(each))
    return module


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """A method of a module that fully_shard was called with gathers and reshards as forward does; nothing for other modules.
    InvalidArgumentError where there is no such method."""
    if not callable(getattr(module, method_name, None)):
        raise InvalidArgumentError(f"{type(module).__name__} has no method {method_name!r}")
    state = state_of(module)
    if state is not None:
        forward_method(module, state, method_name)


def share_comm_ctx(modules: Sequence[nn.Module]) -> None:
    """Declares that models run one after the other, so that they may share what they communicate with. Models over one mesh do
    that anyway here; this checks that they are. InvalidArgumentError where a module is none of fully_shard or has another mesh."""
    for each in modules:
        state = state_of(each) if isinstance(each, nn.Module) else None
        if state is None:
            raise InvalidArgumentError(f"share_comm_ctx takes modules of fully_shard, found {type(each).__name__}")
        first = state_of(modules[0])
        if first is not None and not state.unit.place.is_like(first.unit.place):
            raise InvalidArgumentError(f"{type(each).__name__} is sharded over {state.unit.place.mesh}, and "
                                       f"{type(modules[0]).__name__} over {first.unit.place.mesh}: they share nothing")


def _is_taken(module: nn.Module) -> bool:
    return state_of(module) is not None


def _checked_modules(module: Any) -> list[nn.Module]:
    modules = module if isinstance(module, list) else [module]
    if not modules or not all(isinstance(each, nn.Module) for each in modules):
        raise InvalidArgumentError(f"fully_shard takes a module or a list of modules, found {module!r}")
    if len({id(each) for each in modules}) < len(modules):
        raise InvalidArgumentError("fully_shard takes a list of modules in which each comes once")
    for each in modules:
        name = type(each).__name__
        if state_of(each) is not None:
            raise InvalidArgumentError(f"fully_shard was called with this {name} before")
        if isinstance(each, (nn.ModuleList, nn.ModuleDict)):
            raise InvalidArgumentError(f"{name} has no forward: call fully_shard with the modules in it")
        if any(is_sharded(param) for param in each.parameters(recurse=False)):
            raise InvalidArgumentError(f"parameters of this {name} are sharded already: fully_shard was called with a module "
                                       "around it before; call it on inner modules first")
    return modules


def _check_options(policy: Any, offload: Any, layout: str) -> None:
    if not isinstance(policy, MixedPrecisionPolicy):
        raise InvalidArgumentError(f"mp_policy is {policy!r}, not a MixedPrecisionPolicy")
    if offload is not None and not isinstance(offload, (OffloadPolicy, CPUOffloadPolicy)):
        raise InvalidArgumentError(f"offload_policy is {offload!r}, not an OffloadPolicy")
    if layout not in ("row", "ragged"):
        raise InvalidArgumentError(f"layout is {layout!r}; it must be 'row' or 'ragged'")


def _check_numbers(**numbers: Any) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidArgumentError(f"{name} is {value!r}; it must be a number from 0")


def _policy_of(value: Any, size: int) -> bool | int | None:
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int):
        raise InvalidArgumentError(f"reshard_after_forward is {value!r}; it must be a bool, a number of ranks or None")
    if value == 1:
        warnings.warn("reshard_after_forward=1 keeps whole parameters on each rank; it is False", stacklevel=3)
        return False
    if value == size:
        return True
    if value < 1 or size % value != 0:
        raise InvalidArgumentError(f"reshard_after_forward is {value}, which does not divide the {size} ranks of the shard axis")
    return value


def _check_policy(policy: bool | int | None, params: list[ManagedParameter]) -> None:
    for param in params:
        if policy is not None and not isinstance(policy, bool) and param.place.shard_size % policy != 0:
            raise InvalidArgumentError(f"reshard_after_forward is {policy}, which does not divide the {param.place.shard_size} ranks "
                                       f"of the mesh of {param.name}", {"parameter": param.name})


def _class_of(kind: type) -> type:
    if kind not in _classes:
        _classes[kind] = type(f"HSDP{kind.__name__}", (HSDPModule, kind), {"__module__": kind.__module__})
    return _classes[kind]
