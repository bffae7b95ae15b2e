# SPDX-License-Identifier: Apache-2.0
"""How ranks share a parameter that is a DTensor already. What is sharded is this rank's part of it, over the ranks that have the
same part; the DTensor of the shard names both cuts, as FSDP2 places them."""
from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from ...errors import InvalidArgumentError
from ._dtensors import dtensor_of
from ._placement import MeshPlace


class TensorParallelPlace:
    """The place of one DTensor parameter: the axes of data parallelism, then those that the parameter has. InvalidArgumentError
    naming it where they are not axes of one mesh."""

    def __init__(self, place: MeshPlace, name: str, param: DTensor) -> None:
        self._place = self.data_place = place
        self._mesh, self._placements = param.device_mesh, tuple(param.placements)
        self._shape, self._stride = param.shape, param.stride()
        if any(each.is_partial() for each in self._placements):
            raise InvalidArgumentError(f"parameter {name} is placed {self._placements}: a part of a sum cannot be sharded",
                                       {"parameter": name})
        self._both = self._mesh_of_shard(name)

    def _mesh_of_shard(self, name: str) -> DeviceMesh:
        try:
            return DeviceMesh._concatenate([self._place.mesh, self._mesh])
        except (RuntimeError, AssertionError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"parameter {name} is a DTensor on {self._mesh}, and fully_shard was given {self._place.mesh}: "
                                       f"they must be disjoint named axes of one mesh ({error})", {"parameter": name}) from error

    def placements(self, shard_dim: int | None) -> tuple[Any, ...]:
        """Of the shard. Where both cut one dimension, tensor parallelism cuts first: the other cut strides over its parts."""
        factor = 1
        for axis, each in enumerate(self._placements):
            if each.is_shard() and each.dim == shard_dim:  # type: ignore[attr-defined]
                factor *= self._mesh.size(axis)
        own = self._place.placements(shard_dim)
        if factor > 1:
            own = tuple(_StridedShard(each.dim, split_factor=factor) if isinstance(each, Shard) else each for each in own)
        return (*own, *self._placements)

    def is_part(self, found: torch.Tensor, shard_dim: int | None) -> bool:
        """Whether a tensor is what `tensor` makes."""
        return isinstance(found, DTensor) and found.placements == self.placements(shard_dim)

    def text(self, shard_dim: int | None, shape: torch.Size) -> str:
        """What that is, for errors."""
        return f"a DTensor of shape {tuple(shape)}, placed {self.placements(shard_dim)}"

    def tensor(self, local: torch.Tensor, shard_dim: int | None, shape: torch.Size) -> DTensor:
        """The parameter of which `local` is this rank's shard."""
        return dtensor_of(local, self._both, self.placements(shard_dim), shape, self._stride)

    def part(self, whole: torch.Tensor, shard_dim: int | None) -> torch.Tensor:
        """This rank's shard of the part that it has by tensor parallelism; a view."""
        return self._place.part(whole, shard_dim)

    def whole(self, memory: torch.Tensor) -> torch.Tensor:
        """The DTensor that modules compute with, of gathered memory."""
        return DTensor.from_local(memory, self._mesh, self._placements, run_check=False, shape=self._shape, stride=self._stride)

    def gradient(self, grad: torch.Tensor) -> torch.Tensor:
        """What this rank hands over of the gradient of `whole`. Collective over tensor parallelism where it is a sum yet."""
        assert isinstance(grad, DTensor)
        if tuple(grad.placements) != self._placements:
            grad = grad.redistribute(placements=self._placements)
        return grad.to_local()


class WholeMeshPlace(TensorParallelPlace):
    """The place of one DTensor parameter on the mesh whose axes `dp_mesh_dims` names, all of it: it is the same along those axes, and
    the shard is placed on that mesh, but that several axes that shard become one. InvalidArgumentError naming the parameter."""

    def __init__(self, place: MeshPlace, name: str, param: DTensor) -> None:
        assert place.named is not None
        self._names = place.named.mesh.mesh_dim_names or ()
        self._shards = [self._names.index(each) for each in place.named.shards]
        self._data_axes = {*self._shards, *(self._names.index(each) for each in place.named.replicas)}
        # Axes of the mesh of the shard: numbers of the given mesh, and the places of the mesh of data parallelism, below 0.
        self._axes: list[int] = []
        super().__init__(place, name, param)
        for axis in sorted(self._data_axes):
            if not self._placements[axis].is_replicate():
                raise InvalidArgumentError(f"parameter {name} is placed {self._placements}; it must be the same along the axis "
                                           f"{self._names[axis]!r}, which dp_mesh_dims names", {"parameter": name})

    def _mesh_of_shard(self, name: str) -> DeviceMesh:
        if len(self._shards) <= 1:
            self._axes = list(range(self._mesh.ndim))
            return self._mesh
        meshes = []
        for axis, each in enumerate(self._names):
            if axis == min(self._shards):
                meshes.append(self._place.mesh)
                self._axes += range(-self._place.mesh.ndim, 0)
            elif axis not in self._data_axes:
                meshes.append(self._mesh[each])
                self._axes.append(axis)
        return DeviceMesh._concatenate(meshes)

    def placements(self, shard_dim: int | None) -> tuple[Any, ...]:
        """Of the shard. Where an axis behind cuts the same dimension, the cut of data parallelism strides over its parts."""
        cut = -1 if len(self._shards) > 1 else self._shards[0] if self._shards else None
        found: list[Any] = [Replicate() if axis < 0 else self._placements[axis] for axis in self._axes]
        if shard_dim is None or cut is None:
            return tuple(found)
        at = self._axes.index(cut)
        factor = 1
        for axis, each in zip(self._axes[at + 1:], found[at + 1:], strict=True):
            if isinstance(each, (Shard, _StridedShard)) and each.dim == shard_dim:
                factor *= self._mesh.size(axis)
        found[at] = Shard(shard_dim) if factor == 1 else _StridedShard(shard_dim, split_factor=factor)
        return tuple(found)

    def gradient(self, grad: torch.Tensor) -> torch.Tensor:
        """What this rank hands over of the gradient of `whole`; what is a sum along the axes of data parallelism is made there."""
        assert isinstance(grad, DTensor)
        wanted = tuple(grad.placements[axis] if axis in self._data_axes else each for axis, each in enumerate(self._placements))
        if tuple(grad.placements) != wanted:
            grad = grad.redistribute(placements=wanted)
        return grad.to_local()
