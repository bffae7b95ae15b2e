# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a DeviceMesh share parameters: its axes, the placements of DTensors, and the mesh of the library."""
from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from ...hsdp import Communicator, Mesh
from .._choice import communicator_over

class MeshPlace:
    """A mesh of one axis (shards), or of two (replicas, shards)."""

    def __init__(self, mesh: DeviceMesh) -> None:
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard takes a mesh of 1 or 2 dimensions, found {mesh.ndim}: {mesh}")
        if mesh.device_type != "cpu":
            raise NotImplementedError(f"fully_shard runs on the CPU, found a mesh of {mesh.device_type}")
        self.mesh = mesh
        self.shard_axis = mesh.ndim - 1
        self.replicate_axis = 0 if mesh.ndim == 2 else None
        self.shard_size = mesh.size(self.shard_axis)
        self.shard_rank = mesh.get_local_rank(self.shard_axis)

    def placements(self, shard_dim: int | None) -> tuple[Any, ...]:
        """Of a DTensor that is cut along a dimension; None: whole on each rank."""
        last = Replicate() if shard_dim is None else Shard(shard_dim)
        return (last,) if self.replicate_axis is None else (Replicate(), last)

    def dtensor(self, local: torch.Tensor, shard_dim: int | None, shape: torch.Size) -> DTensor:
        """The tensor of that global shape of which `local` is this rank's part."""
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(local, self.mesh, self.placements(shard_dim), run_check=False, shape=shape, stride=stride)

    def part(self, whole: torch.Tensor, shard_dim: int | None) -> torch.Tensor:
        """This rank's part of a whole tensor, cut as torch.chunk cuts; a view."""
        return whole if shard_dim is None else part_of(whole, shard_dim, self.shard_size, self.shard_rank)


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
            self.mesh.set_communicator(self._place.shard_axis, self._over(group, "hsdp"), "secondary")

    def abort(self, message: str) -> None:
        """Ranks that wait for this one raise an error with the message."""
        for each in self._communicators:
            each.abort(message)

    def _over(self, group: dist.ProcessGroup, use: str) -> Communicator:
        made = communicator_over(group, use, self._timeout)
        self._communicators.append(made)
        return made


def _neighbours(place: MeshPlace, size: int) -> dist.ProcessGroup:
    """The group of the `size` neighbours on the shard axis with this rank among them. Collective."""
    ranks = place.mesh.mesh.reshape(-1, place.shard_size // size, size)
    made = DeviceMesh("cpu", ranks, mesh_dim_names=("_replicas", "_groups", "_neighbours"))
    return made.get_group("_neighbours")


def whole_world() -> DeviceMesh:
    """One axis over all ranks."""
    return init_device_mesh("cpu", (dist.get_world_size(),))
