# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a DeviceMesh share parameters: its axes, the placements of DTensors, and the mesh of the library."""
from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from ...errors import InvalidArgumentError
from ...hsdp import Communicator, Mesh
from .._own_groups import group_of
from ._dtensors import dtensor_of
from ._unit_device import UnitDevice, default_kind, unit_device

_device_meshes: weakref.WeakKeyDictionary[Mesh, dict[str, DeviceMesh]] = weakref.WeakKeyDictionary()  # by kinds of devices


class NamedAxes(NamedTuple):
    """What `dp_mesh_dims` names: the mesh, and its axes that shard and that replicate."""

    mesh: DeviceMesh
    shards: tuple[str, ...]
    replicas: tuple[str, ...]


class MeshPlace:
    """A mesh of one axis (shards), or of two (replicas, shards), and where its units live; `shards=False`: of one axis, of
    replicas."""

    def __init__(self, mesh: DeviceMesh, device: UnitDevice, shards: bool = True, named: NamedAxes | None = None) -> None:
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard takes a mesh of 1 or 2 dimensions, found {mesh.ndim}: {mesh}")
        _check_order(mesh.mesh)
        self.mesh = mesh
        self.device = device
        self.named = named  # a larger mesh of which it has axes
        self.shard_axis = mesh.ndim - 1 if shards else None
        self.replicate_axis = 0 if mesh.ndim == 2 or not shards else None
        self.shard_size = 1 if self.shard_axis is None else mesh.size(self.shard_axis)
        self.shard_rank = 0 if self.shard_axis is None else mesh.get_local_rank(self.shard_axis)

    @property
    def data_place(self) -> MeshPlace:
        """That of data parallelism alone."""
        return self

    def is_like(self, other: MeshPlace) -> bool:
        """Whether ranks share parameters alike."""
        return (self.mesh == other.mesh and self.shard_axis == other.shard_axis and
                self.device.device == other.device.device)

    def placements(self, shard_dim: int | None) -> tuple[Any, ...]:
        """Of a DTensor that is cut along a dimension; None: whole on each rank."""
        last = () if self.shard_axis is None else (Replicate() if shard_dim is None else Shard(shard_dim),)
        return last if self.replicate_axis is None else (Replicate(), *last)

    def is_part(self, found: torch.Tensor, shard_dim: int | None) -> bool:
        """Whether a tensor is what `tensor` makes."""
        return isinstance(found, DTensor) and found.placements == self.placements(shard_dim)

    def text(self, shard_dim: int | None, shape: torch.Size) -> str:
        """What that is, for errors."""
        return f"a DTensor of shape {tuple(shape)}, placed {self.placements(shard_dim)}"

    def tensor(self, local: torch.Tensor, shard_dim: int | None, shape: torch.Size) -> DTensor:
        """The tensor of that global shape of which `local` is this rank's part."""
        stride = torch.empty(shape, device="meta").stride()
        return dtensor_of(local, self.mesh, self.placements(shard_dim), shape, stride)

    def part(self, whole: torch.Tensor, shard_dim: int | None) -> torch.Tensor:
        """This rank's part of a whole tensor, cut as torch.chunk cuts; a view."""
        return whole if shard_dim is None else part_of(whole, shard_dim, self.shard_size, self.shard_rank)

    def whole(self, memory: torch.Tensor) -> torch.Tensor:
        """What modules compute with, of gathered memory."""
        return memory

    def gradient(self, grad: torch.Tensor) -> torch.Tensor:
        """What this rank hands over of the gradient of `whole`."""
        return grad


def distinct(places: Iterable[MeshPlace]) -> list[MeshPlace]:
    """One for all that are alike, in the order in which they come."""
    found: list[MeshPlace] = []
    for place in places:
        if not any(place.is_like(each) for each in found):
            found.append(place)
    return found


def part_of(whole: torch.Tensor, dim: int, size: int, rank: int) -> torch.Tensor:
    """The part of one of `size` ranks, cut as torch.chunk cuts; a view."""
    extent = whole.size(dim)
    rows = (extent + size - 1) // size
    begin = min(rows * rank, extent)
    return whole.narrow(dim, begin, min(begin + rows, extent) - begin)


class ContextMesh:
    """The library's mesh of one context, whose communicators go over groups of our own."""

    def __init__(self, place: MeshPlace, secondary: set[int], reduces_apart: bool, timeout: float | None) -> None:
        self._place = place
        self._reduces_apart = reduces_apart
        self._timeout = timeout
        self._communicators: list[Communicator] = []
        self._transport = place.device.transport(place.mesh)
        self.sums_in_order = self._transport.in_order
        ranks = place.mesh.mesh.flatten().tolist()
        self.mesh = Mesh(tuple(place.mesh.mesh.shape), rank=dist.get_rank(), ranks=ranks)
        self._secondary = {size: _neighbours(place, size) for size in sorted(secondary)}
        self.connect()

    def connect(self) -> None:
        """New communicators, on all ranks."""
        self._communicators.clear()
        mesh = self._place.mesh
        for axis in range(mesh.ndim):
            if mesh.size(axis) > 1:
                self.mesh.set_communicator(axis, self._over(mesh.get_group(axis), "hsdp"))
                if self._reduces_apart:
                    self.mesh.set_communicator(axis, self._over(mesh.get_group(axis), "hsdp reduce"), "reduce")
        for size, group in self._secondary.items():
            assert self._place.shard_axis is not None
            self.mesh.set_communicator(self._place.shard_axis, self._over(group, "hsdp"), "secondary")

    def abort(self, message: str) -> None:
        """Ranks that wait for this one raise an error with the message."""
        for each in self._communicators:
            each.abort(message)

    def _over(self, group: dist.ProcessGroup, use: str) -> Communicator:
        made = self._transport.open(group, use, self._timeout)
        self._communicators.append(made)
        return made


def _neighbours(place: MeshPlace, size: int) -> dist.ProcessGroup:
    """The group of the `size` neighbours on the shard axis with this rank among them. Collective over them alone."""
    all_groups = place.mesh.mesh.reshape(-1, size).tolist()
    return group_of(next(each for each in all_groups if dist.get_rank() in each))


def place_of(mesh: DeviceMesh | Mesh | None, dims: Any, device: torch.device | None = None) -> MeshPlace:
    """How ranks share parameters and where, of what a host gives as `mesh`, `dp_mesh_dims` and `device`. Collective where it makes
    groups. InvalidArgumentError naming what is wrong, UnavailableError what is missing for a device."""
    if mesh is not None and not isinstance(mesh, (DeviceMesh, Mesh)):
        raise InvalidArgumentError(f"mesh is {mesh!r}; it must be a DeviceMesh, a shardwright.hsdp.Mesh or None")
    if mesh is None and dims is not None:
        raise InvalidArgumentError("dp_mesh_dims names axes of a mesh, and there is no mesh")
    kind = mesh.device_type if isinstance(mesh, DeviceMesh) else default_kind() if device is None else device.type
    if device is not None and device.type != kind:
        raise InvalidArgumentError(f"device is {device}, and the mesh is one of {kind}: units live on the device of their mesh",
                                   {"parameter": "device"})
    where = unit_device(kind, None if device is None else device.index)
    found = _device_mesh(mesh, kind)
    return MeshPlace(found, where) if dims is None else _named_place(found, where, dims)


def _device_mesh(mesh: DeviceMesh | Mesh | None, kind: str) -> DeviceMesh:
    """The same DeviceMesh for the same Mesh, so that units which were given one Mesh share one; None = one axis over all ranks."""
    if mesh is None:
        return init_device_mesh(kind, (dist.get_world_size(),))
    if isinstance(mesh, DeviceMesh):
        return mesh
    made = _device_meshes.setdefault(mesh, {})
    if kind not in made:
        ranks = torch.tensor(mesh.ranks).reshape(mesh.shape)
        _check_order(ranks)
        made[kind] = _over_own_groups(ranks, mesh.names, kind)
    return made[kind]


def _over_own_groups(ranks: torch.Tensor, names: tuple[str, ...] | None, kind: str) -> DeviceMesh:
    """Collective over its ranks alone, where DeviceMesh itself asks all of the world."""
    place = (ranks == dist.get_rank()).nonzero()[0].tolist()
    groups = []
    for axis in range(ranks.ndim):
        line = ranks[tuple(slice(None) if each == axis else index for each, index in enumerate(place))]
        groups.append(group_of(line.tolist()))
    if len(groups) == 1:
        return DeviceMesh.from_group(groups[0], kind, mesh_dim_names=names)
    return DeviceMesh.from_group(groups, kind, ranks, mesh_dim_names=names or tuple(f"axis{axis}" for axis in range(ranks.ndim)))


def _check_order(ranks: torch.Tensor) -> None:
    """Groups of torch hold their ranks in rising order, so a DTensor on another mesh has its parts in an order that is not that of
    the mesh. InvalidArgumentError naming the axis."""
    for axis in range(ranks.ndim):
        if (ranks.diff(dim=axis) <= 0).any():
            raise InvalidArgumentError(f"the ranks of the mesh {ranks.tolist()} do not rise along axis {axis}: order them so that they "
                                       "do along each axis")


def _named_place(mesh: DeviceMesh, device: UnitDevice, dims: Any) -> MeshPlace:
    shards, replicas = _axis_names(dims, "shard"), _axis_names(dims, "replicate")
    known = mesh.mesh_dim_names or ()
    for name in (*shards, *replicas):
        if name not in known:
            raise InvalidArgumentError(f"dp_mesh_dims names the axis {name!r}; the mesh has {', '.join(known) or 'no names'}")
    if len({*shards, *replicas}) < len(shards) + len(replicas) or not shards + replicas:
        raise InvalidArgumentError(f"dp_mesh_dims is {dims!r}; it must name axes, each once")
    named = NamedAxes(mesh, shards, replicas)
    if not shards:
        return MeshPlace(_as_one_axis(mesh, replicas), device, shards=False, named=named)
    if not replicas:
        return MeshPlace(_as_one_axis(mesh, shards), device, named=named)
    both = DeviceMesh._concatenate([_as_one_axis(mesh, replicas), _as_one_axis(mesh, shards)])
    return MeshPlace(both, device, named=named)


def _axis_names(dims: Any, role: str) -> tuple[str, ...]:
    if not hasattr(dims, role):
        raise InvalidArgumentError(f"dp_mesh_dims is {dims!r}; it must be a DataParallelMeshDims")
    names = getattr(dims, role)
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _as_one_axis(mesh: DeviceMesh, names: tuple[str, ...]) -> DeviceMesh:
    return mesh[names[0]] if len(names) == 1 else mesh[names]._flatten("_".join(names))
