# SPDX-License-Identifier: Apache-2.0
"""Parameters of a unit: the sharded DTensor that optimizers see, and the whole tensor that a module computes with."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from ...errors import InvalidArgumentError
from ...hsdp import Mesh
from .._ragged import RaggedTensor
from ._placement import MeshPlace, distinct, place_of
from ._ragged_place import RaggedParam, RaggedPlace, ragged_places
from ._tensor_parallel import TensorParallelPlace, WholeMeshPlace
from .policies import MixedPrecisionPolicy

Place = MeshPlace | TensorParallelPlace | RaggedPlace
PlacementFn = Callable[[nn.Parameter], Any]
_TAKEN = "_shardwright_taken_as"  # of a parameter that a unit has replaced, and of its shard: the name that it has there


class ManagedParameter:
    """One parameter and every place of modules that refers to it."""

    def __init__(self, name: str, param: nn.Parameter, place: Place, shard_dim: int | None, offloads: bool) -> None:
        self.name = name
        self.aliases: list[str] = []
        self.owners: list[tuple[nn.Module, str]] = []
        self.shape, self.dtype = param.shape, param.dtype
        self.cast_dtype: torch.dtype | None = None  # in which floating ones are computed with, None = as stored
        self.shard_dim = shard_dim
        self._place = place
        self.ragged_begin = place.begin if isinstance(place, RaggedPlace) else None  # first row of this rank, where no rule says it
        self.place = place.data_place  # of data parallelism alone
        self.home = self.place.device.home(offloads)  # where its shard lies
        gathered = _of_this_rank(param)
        self.gathered_shape = gathered.shape  # of what gathers make, which is a part where tensor parallelism cuts
        local = copied_to(self.home, place.part(gathered, shard_dim))
        self.sharded = nn.Parameter(place.tensor(local, shard_dim, param.shape), requires_grad=param.requires_grad)
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
            if found is None or not self._place.is_part(found, self.shard_dim) or found.shape != self.shape:
                given = found.placements if isinstance(found, DTensor) else type(found).__name__
                raise InvalidArgumentError(f"parameter {self.name} was replaced by {given}; it must be "
                                           f"{self._place.text(self.shard_dim, self.shape)}", {"parameter": self.name})
            setattr(found, _TAKEN, getattr(self.sharded, _TAKEN, self.name))
            self.sharded = found
            self.show(whole=False)
        if not self.local.is_meta and self.local.device != self.home:
            raise InvalidArgumentError(f"the shard of parameter {self.name} lies on {self.local.device}, where the host has put it; it "
                                       f"must lie on {self.home}", {"parameter": self.name})
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
        dtype = self.cast_dtype or self.dtype if self.dtype.is_floating_point else self.dtype
        tensor = torch.empty(self.gathered_shape, dtype=dtype, device=self.place.device.device)
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
            setattr(self.sharded, attribute, self._place.tensor(local, self.shard_dim, self.shape))
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


def copied_to(device: torch.device, tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous copy; one that has no memory stays where it is."""
    return tensor.to(tensor.device if tensor.is_meta else device, copy=True, memory_format=torch.contiguous_format)


def move_buffers(modules: Iterable[nn.Module], device: torch.device, taken: Callable[[nn.Module], bool]) -> None:
    """Buffers below the modules that no unit inside them has, as fully_shard of torch moves them."""
    for root in modules:
        for _, module in _own_modules("", root, taken):
            for each in module._buffers.values():
                if each is not None and not each.is_meta and each.device != device and not isinstance(each, DTensor):
                    each.data = each.to(device)


def is_sharded(param: nn.Parameter) -> bool:
    """Whether it is the shard of a unit."""
    return isinstance(param, (DTensor, RaggedTensor)) and hasattr(param, _TAKEN)


class _Found:
    """A parameter that is to be managed, and how it is cut."""

    def __init__(self, name: str, path: str, param: nn.Parameter, place: MeshPlace, shard_dim: int | None,
                 cast_dtype: torch.dtype | None) -> None:
        self.name, self.path, self.param, self.place, self.shard_dim = name, path, param, place, shard_dim
        self.cast_dtype = cast_dtype
        self.aliases: list[str] = []
        self.owners: list[tuple[nn.Module, str]] = []


def managed_parameters(modules: Iterable[nn.Module], place: MeshPlace, *, taken: Callable[[nn.Module], bool],
                       ignored: set[nn.Parameter], replicated: set[nn.Parameter], threshold: int,
                       placement_fn: PlacementFn | None, policy: MixedPrecisionPolicy, ragged: bool = False,
                       fused: bool = True, offloads: bool = False) -> list[ManagedParameter]:
    """All parameters below the modules that no unit inside them has, one for each tensor; those in `replicated` or of less than
    `threshold` bytes are whole on each rank. Those modules refer to the sharded parameters afterwards. ragged: cut by the layout
    of the unit; fused: one gather for all parameters of a dtype; offloads: shards lie with the host."""
    found: dict[nn.Parameter, _Found] = {}
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
                    found[param] = _Found(name, f"{type(root).__name__}.{name}", param, own_place, dim, policy.dtype_for(name, param))
                else:
                    found[param].aliases.append(name)
                found[param].owners.append((module, attribute))
    all_found = list(found.values())
    places = _ragged_places(all_found, place, policy, fused) if ragged else [
        _place_for(each.name, each.param, each.place) for each in all_found]
    made = [_managed(each, own_place, offloads) for each, own_place in zip(all_found, places, strict=True)]
    for each in made:
        each.show(whole=False)
    return made


def _managed(found: _Found, place: Place, offloads: bool) -> ManagedParameter:
    made = ManagedParameter(found.name, found.param, place, found.shard_dim, offloads)
    made.cast_dtype, made.aliases, made.owners = found.cast_dtype, found.aliases, found.owners
    setattr(found.param, _TAKEN, found.path)
    setattr(made.sharded, _TAKEN, found.path)
    return made


def gathered_together(params: Sequence[tuple[MeshPlace, torch.dtype | None]], home: MeshPlace, fused: bool) -> list[list[int]]:
    """The numbers of the parameters that are gathered as one: those computed with in one dtype on one mesh, or each alone."""
    places = distinct([home, *(place for place, _ in params)])
    found: dict[Any, list[int]] = {}
    for number, (place, cast_dtype) in enumerate(params):
        of_all = next(index for index, each in enumerate(places) if each.is_like(place))
        found.setdefault((of_all, cast_dtype) if fused else number, []).append(number)
    return list(found.values()) or [[]]


def dtype_name(dtype: torch.dtype | None) -> str | None:
    """The library's name of a torch dtype."""
    return None if dtype is None else str(dtype).removeprefix("torch.")


class UnitDTypes(TypedDict):
    """Arguments of Hsdp.unit."""

    param_dtype: str | None
    reduce_dtype: str | None
    grad_dtype: str | None


def unit_dtypes(policy: MixedPrecisionPolicy, cast_dtype: torch.dtype | None) -> UnitDTypes:
    """The dtypes of a unit of the library."""
    return {"param_dtype": dtype_name(cast_dtype), "reduce_dtype": dtype_name(policy.reduce_dtype),
            "grad_dtype": "float32" if policy.apply_grad_on_fp32_main_grad else None}


def _ragged_places(found: Sequence[_Found], home: MeshPlace, policy: MixedPrecisionPolicy, fused: bool) -> list[RaggedPlace]:
    for each in found:
        if isinstance(each.param, DTensor):
            raise InvalidArgumentError(f"parameter {each.name} is a DTensor, which a ragged unit cannot cut again: take layout='row' "
                                       "for modules of tensor parallelism", {"parameter": each.name})
        if each.shard_dim:
            raise InvalidArgumentError(f"shard_placement_fn gives Shard({each.shard_dim}) for {each.name}; a ragged unit cuts the first "
                                       "dimension only", {"parameter": each.name})
    places: dict[int, RaggedPlace] = {}
    for numbers in gathered_together([(each.place, each.cast_dtype) for each in found], home, fused):
        if numbers:
            params = [RaggedParam(tuple(each.param.shape), dtype_name(each.param.dtype) or "", each.shard_dim is None)
                      for each in (found[number] for number in numbers)]
            first = found[numbers[0]]
            places |= dict(zip(numbers, ragged_places(params, first.place, unit_dtypes(policy, first.cast_dtype)), strict=True))
    return [places[number] for number in range(len(found))]


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
    if not isinstance(param, DTensor):
        return place
    if place.named is not None and param.device_mesh == place.named.mesh:
        return WholeMeshPlace(place, name, param)
    return TensorParallelPlace(place, name, param)


def _placed(name: str, param: nn.Parameter, place: MeshPlace, placement_fn: PlacementFn | None) -> tuple[int, MeshPlace]:
    """The dimension that is cut, and over which mesh."""
    given = None if placement_fn is None else placement_fn(param)
    if not isinstance(given, tuple):
        return _dimension(name, param, place, given), place
    if len(given) != 2 or not isinstance(given[1], (DeviceMesh, Mesh)):
        raise InvalidArgumentError(f"shard_placement_fn gives {given!r} for {name}; it must be None, a Shard, or one and its mesh",
                                   {"parameter": name})
    own = place_of(given[1], None, place.device.device)
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
