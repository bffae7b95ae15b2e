# SPDX-License-Identifier: Apache-2.0
"""Parameters of a unit: the sharded DTensor that optimizers see, and the whole tensor that a module computes with."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from ...errors import InvalidArgumentError
from ...hsdp import Mesh
from ._placement import MeshPlace, place_of
from ._tensor_parallel import TensorParallelPlace
from .policies import MixedPrecisionPolicy

Place = MeshPlace | TensorParallelPlace
PlacementFn = Callable[[nn.Parameter], Any]
_TAKEN = "_shardwright_taken_as"  # of a parameter that a unit has replaced, and of its shard: the name that it has there


class ManagedParameter:
    """One parameter and every place of modules that refers to it."""

    def __init__(self, name: str, param: nn.Parameter, place: Place, shard_dim: int | None) -> None:
        self.name = name
        self.aliases: list[str] = []
        self.owners: list[tuple[nn.Module, str]] = []
        self.shape, self.dtype = param.shape, param.dtype
        self.cast_dtype: torch.dtype | None = None  # in which floating ones are computed with, None = as stored
        self.shard_dim = shard_dim
        self._place = place
        self.place = place.data_place  # of data parallelism alone
        gathered = _of_this_rank(param)
        self.gathered_shape = gathered.shape  # of what gathers make, which is a part where tensor parallelism cuts
        local = place.part(gathered, shard_dim).clone(memory_format=torch.contiguous_format)
        self.sharded = nn.Parameter(place.dtensor(local, shard_dim, param.shape), requires_grad=param.requires_grad)
        self.whole: nn.Parameter | None = None
        self.memory = torch.empty(0)  # of the whole parameter
        self.seen_version = (-1, -1)
        self.address = 0  # of the shard in memory of the library

    @property
    def local(self) -> torch.Tensor:
        """This rank's part of the sharded parameter."""
        return self.sharded._local_tensor  # type: ignore[attr-defined,no-any-return]

    def adopt(self) -> None:
        """What a host has put in the place of the sharded parameter, as loads with assign do, is the parameter from here on.
        InvalidArgumentError where it is of another kind, shape or dtype."""
        for module, attribute in self.owners:
            found = module._parameters.get(attribute)
            if found is self.sharded:
                continue
            placements = self._place.placements(self.shard_dim)
            if not isinstance(found, DTensor) or found.placements != placements or found.shape != self.shape:
                given = found.placements if isinstance(found, DTensor) else type(found).__name__
                raise InvalidArgumentError(f"parameter {self.name} was replaced by {given}; it must be a DTensor of shape "
                                           f"{tuple(self.shape)}, placed {placements}", {"parameter": self.name})
            assert isinstance(found, nn.Parameter)
            setattr(found, _TAKEN, getattr(self.sharded, _TAKEN, self.name))
            self.sharded = found
            self.show(whole=False)
        if self.whole is not None and self.local.dtype != self.dtype:
            raise InvalidArgumentError(f"parameter {self.name} has become {self.local.dtype} and was {self.dtype}: dtypes are those "
                                       "of the first forward", {"parameter": self.name})
        self.dtype = self.local.dtype

    def version(self) -> tuple[int, int]:
        """Changes with what is written into the shard: through the DTensor, or into its part of this rank."""
        return self.sharded._version, self.local._version

    def name_from(self, paths: Mapping[nn.Module, str]) -> None:
        """Names it by the paths of its modules from the root, which differ where those from the modules of a unit may not."""
        names = [f"{paths[module]}.{attribute}" if paths[module] else attribute
                 for module, attribute in self.owners if module in paths]
        if names:
            self.name, *self.aliases = names

    def make_whole(self) -> None:
        """A whole parameter without memory."""
        tensor = torch.empty(self.gathered_shape, dtype=self.cast_dtype or self.dtype if self.dtype.is_floating_point else self.dtype)
        tensor.untyped_storage().resize_(0)
        self.whole = nn.Parameter(self._place.whole(tensor), requires_grad=self.sharded.requires_grad)
        self.memory = _of_this_rank(self.whole)

    def hold_memory(self, holds: bool) -> tuple[int, int]:
        """Gives the whole parameter its memory, or frees it. Returns its address and bytes."""
        size = self.memory.numel() * self.memory.element_size() if holds else 0
        self.memory.untyped_storage().resize_(size)
        return self.memory.data_ptr() if size else 0, size

    def take_whole_gradient(self) -> torch.Tensor | None:
        """The gradient of the whole parameter, which has none afterwards."""
        grad = None if self.whole is None else self.whole.grad
        if grad is None:
            return None
        assert self.whole is not None
        self.whole.grad = None
        return self._place.gradient(grad).contiguous()

    def move_to(self, memory: torch.Tensor) -> None:
        """The shard lies in `memory` from here on, with the values that it has."""
        with torch.no_grad():
            memory.copy_(self.local)
        self.local.data = memory
        self.address = memory.data_ptr()
        self.seen_version = self.version()

    def show(self, whole: bool) -> None:
        """Modules see the whole parameter or the sharded one."""
        shown = self.whole if whole else self.sharded
        for module, attribute in self.owners:
            module._parameters[attribute] = shown

    def take_gradient(self, local: torch.Tensor, attribute: str) -> None:
        """Adds the gradient of the shard to what is there."""
        there = getattr(self.sharded, attribute, None)
        if there is None:
            setattr(self.sharded, attribute, self._place.dtensor(local, self.shard_dim, self.shape))
        else:
            there._local_tensor.add_(local)
        hooks = getattr(self.sharded, "_post_accumulate_grad_hooks", None) if attribute == "grad" else None
        for hook in list((hooks or {}).values()):
            hook(self.sharded)

    def drop_gradients(self) -> None:
        """Of the shard and of the whole parameter."""
        self.sharded.grad = None
        if hasattr(self.sharded, "main_grad"):
            self.sharded.main_grad = None
        if self.whole is not None:
            self.whole.grad = None


def is_sharded(param: nn.Parameter) -> bool:
    """Whether it is the shard of a unit."""
    return isinstance(param, DTensor) and hasattr(param, _TAKEN)


def managed_parameters(modules: Iterable[nn.Module], place: MeshPlace, *, taken: Callable[[nn.Module], bool],
                       ignored: set[nn.Parameter], replicated: set[nn.Parameter], threshold: int,
                       placement_fn: PlacementFn | None, policy: MixedPrecisionPolicy) -> list[ManagedParameter]:
    """All parameters below the modules that no unit inside them has, one for each tensor; those in `replicated` or of less than
    `threshold` bytes are whole on each rank. Those modules refer to the sharded parameters afterwards."""
    found: dict[nn.Parameter, ManagedParameter] = {}
    names: dict[nn.Parameter, str] = {}
    for root in modules:
        for prefix, module in _own_modules("", root, taken):
            for attribute, param in list(module._parameters.items()):
                if param is None or param in ignored:
                    continue
                name = f"{prefix}{attribute}"
                if param not in found:
                    _check(f"{type(root).__name__}.{name}", name, param)
                    own = _of_this_rank(param)
                    whole = param in replicated or own.numel() * own.element_size() < threshold
                    dim, own_place = (None, place) if whole else _placed(name, param, place, placement_fn)
                    names[param] = f"{type(root).__name__}.{name}"
                    found[param] = ManagedParameter(name, param, _place_for(name, param, own_place), dim)
                    found[param].cast_dtype = policy.dtype_for(name, param)
                else:
                    found[param].aliases.append(name)
                found[param].owners.append((module, attribute))
    for param, name in names.items():
        setattr(param, _TAKEN, name)
        setattr(found[param].sharded, _TAKEN, name)
    for each in found.values():
        each.show(whole=False)
    return list(found.values())


def _own_modules(prefix: str, module: nn.Module, taken: Callable[[nn.Module], bool]) -> list[tuple[str, nn.Module]]:
    own = [(prefix, module)]
    for name, child in module.named_children():
        if not taken(child):
            own += _own_modules(f"{prefix}{name}.", child, taken)
    return own


def _check(path: str, name: str, param: nn.Parameter) -> None:
    taken = getattr(param, _TAKEN, None)
    if taken is not None:
        raise InvalidArgumentError(f"parameter {path} is also {taken}, which an earlier call of fully_shard has sharded: modules "
                                   "that share a parameter must be one unit, fully_shard([first, second])", {"parameter": name})
    if param.dim() == 0:
        raise InvalidArgumentError(f"parameter {name} has no dimension and cannot be cut: give it one of 1 element, or list it in "
                                   "ignored_params", {"parameter": name})
    if not param.is_contiguous():
        raise NotImplementedError(f"parameter {name} is not contiguous (strides {tuple(param.stride())}): make it so before "
                                  "fully_shard")


def _of_this_rank(param: torch.Tensor) -> torch.Tensor:
    """The memory of a parameter, of a DTensor what this rank has."""
    return param._local_tensor.detach() if isinstance(param, DTensor) else param.detach()


def _place_for(name: str, param: torch.Tensor, place: MeshPlace) -> Place:
    return TensorParallelPlace(place, name, param) if isinstance(param, DTensor) else place


def _placed(name: str, param: nn.Parameter, place: MeshPlace, placement_fn: PlacementFn | None) -> tuple[int, MeshPlace]:
    """The dimension that is cut, and over which mesh."""
    given = None if placement_fn is None else placement_fn(param)
    if not isinstance(given, tuple):
        return _dimension(name, param, place, given), place
    if len(given) != 2 or not isinstance(given[1], (DeviceMesh, Mesh)):
        raise InvalidArgumentError(f"shard_placement_fn gives {given!r} for {name}; it must be None, a Shard, or one and its mesh",
                                   {"parameter": name})
    own = place_of(given[1], None)
    return _dimension(name, param, own, given[0]), own


def _dimension(name: str, param: nn.Parameter, place: MeshPlace, placement: Any) -> int:
    if placement is None:
        return 0
    if not isinstance(placement, Shard):
        raise InvalidArgumentError(f"shard_placement_fn gives {placement!r} for {name}; it must be None, a Shard, or one and its "
                                   "mesh", {"parameter": name})
    dim: int = placement.dim + param.dim() if placement.dim < 0 else placement.dim
    if not 0 <= dim < param.dim():
        raise InvalidArgumentError(f"shard_placement_fn gives {placement!r} for {name}, which has {param.dim()} dimensions",
                                   {"parameter": name})
    extents = _of_this_rank(param).shape
    if dim > 0 and extents[dim] % place.shard_size != 0:
        raise NotImplementedError(f"parameter {name} of shape {tuple(extents)} cannot be cut evenly along dimension {dim} "
                                  f"by {place.shard_size} ranks: only the first dimension may be uneven")
    return dim
