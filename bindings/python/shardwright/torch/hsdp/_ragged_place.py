# SPDX-License-Identifier: Apache-2.0
"""RaggedPlace: how ranks share one parameter of a ragged unit, and which rows of it each rank has."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ... import hsdp
from .._ragged import RaggedTensor
from ._placement import MeshPlace


class RaggedPlace:
    """The place of a parameter of which this rank has `count` rows from `begin` on."""

    def __init__(self, place: MeshPlace, begin: int, count: int) -> None:
        self.data_place = place
        self._begin, self._count = begin, count

    @property
    def begin(self) -> int:
        """First row of this rank."""
        return self._begin

    def tensor(self, local: torch.Tensor, shard_dim: int | None, shape: torch.Size) -> RaggedTensor:
        """The tensor of that global shape of which `local` is this rank's part."""
        return RaggedTensor(local, shape, self._begin, self.data_place.mesh,
                            None if shard_dim is None else self.data_place.shard_axis)

    def is_part(self, found: torch.Tensor, shard_dim: int | None) -> bool:
        """Whether a tensor is what `tensor` makes."""
        return isinstance(found, RaggedTensor) and found.rows == (self._begin, self._begin + self._count)

    def text(self, shard_dim: int | None, shape: torch.Size) -> str:
        """What that is, for errors."""
        return f"a RaggedTensor of shape {tuple(shape)}, rows {self._begin} to {self._begin + self._count}"

    def part(self, whole: torch.Tensor, shard_dim: int | None) -> torch.Tensor:
        """This rank's part of a whole tensor; a view."""
        return whole[self._begin:self._begin + self._count]

    def whole(self, memory: torch.Tensor) -> torch.Tensor:
        """What modules compute with, of gathered memory."""
        return memory

    def gradient(self, grad: torch.Tensor) -> torch.Tensor:
        """What this rank hands over of the gradient of `whole`."""
        return grad


class RaggedParam(NamedTuple):
    """What decides how a parameter is cut: all of it but its values."""

    shape: tuple[int, ...]
    dtype: str
    replicate: bool


def ragged_places(params: Sequence[RaggedParam], place: MeshPlace, options: Any) -> list[RaggedPlace]:
    """Places of the parameters of one unit of the library. Each rank for itself: the library lays out the unit that will be made, of
    ranks that are not there. options: its dtypes."""
    if place.shard_axis is None:
        return [RaggedPlace(place, 0, each.shape[0]) for each in params]
    mesh = hsdp.Mesh((place.shard_size,), rank=place.shard_rank)
    mesh.set_communicator(0, hsdp.fake_communicator(place.shard_rank, place.shard_size))
    with hsdp.Hsdp(mesh, settle=place.device.settle, order_guard_steps=0) as stand_in:
        unit = stand_in.unit("layout", layout="ragged", host_memory=True, **options)
        unit.add_params([hsdp.Param(str(number), shape=each.shape, dtype=each.dtype, replicate=each.replicate)
                         for number, each in enumerate(params)])
        unit.seal()
        boxes = [unit.box(number) for number in range(len(params))]
    return [RaggedPlace(place, box.offsets[0] if box.sizes[0] else 0, box.sizes[0]) for box in boxes]
