# SPDX-License-Identifier: Apache-2.0
"""TensorParallelPlace: how ranks share a parameter that tensor parallelism has cut already. What is sharded is this rank's part
of it, over the ranks that have the same part; the DTensor of the shard names both cuts, as FSDP2 places them."""
from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from ...errors import InvalidArgumentError
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
        try:
            self._both = DeviceMesh._concatenate([place.mesh, self._mesh])
        except (RuntimeError, AssertionError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"parameter {name} is a DTensor on {self._mesh}, and fully_shard was given {place.mesh}: they "
                                       f"must be disjoint named axes of one mesh ({error})", {"parameter": name}) from error

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
        return DTensor.from_local(local, self._both, self.placements(shard_dim), run_check=False, shape=shape, stride=self._stride)

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
