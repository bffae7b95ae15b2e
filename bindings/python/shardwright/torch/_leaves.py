# SPDX-License-Identifier: Apache-2.0
"""torch values as leaves of a state: DTensors become shards with a layout, tensors on a device get host memory."""
from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ..layout import Layout, Shard
from ..state import Parts
from ._ragged import RaggedTensor

try:
    from torch.distributed.tensor import DTensor
except ImportError:  # torch built without distributed
    DTensor = None  # type: ignore[assignment,misc]

_CACHED_LAYOUTS_MAX = 256
_layouts: dict[tuple[Any, ...], Layout] = {}
# Shape and global ranks of a mesh, which never change; torch makes the tensor of its ranks anew each time.
_meshes: weakref.WeakKeyDictionary[Any, tuple[tuple[int, ...], tuple[int, ...]]] = weakref.WeakKeyDictionary()
_of_meshes: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], Layout]] = weakref.WeakKeyDictionary()  # by placements


def _placement_row(placement: Any) -> tuple[Any, ...]:
    if placement.is_partial():
        return ("partial",)
    if placement.is_replicate():
        return ("replicate",)
    factor = getattr(placement, "split_factor", None)
    if factor is not None:
        return ("strided_shard", int(placement.dim), int(factor))
    if placement.is_shard():
        return ("shard", int(placement.dim))
    raise InvalidArgumentError(f"placement {placement!r} is not known", {"parameter": "placements"})


def _ranks_of(mesh: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    known = _meshes.get(mesh)
    if known is None:
        ranks = mesh.mesh
        known = _meshes[mesh] = (tuple(ranks.shape), tuple(int(rank) for rank in ranks.flatten().tolist()))
    return known


def layout_of(mesh: Any, placements: Sequence[Any], group: dist.ProcessGroup | None) -> Layout:
    """The layout of a DTensor. Ranks of its mesh are global; they are counted in the group of the call."""
    if group is not None and group is not dist.group.WORLD:
        shape, ranks = _ranks_of(mesh)
        return _made_layout(shape, tuple(dist.get_group_rank(group, rank) for rank in ranks), tuple(placements))
    of_mesh = _of_meshes.setdefault(mesh, {})
    known = of_mesh.get(tuple(placements))
    if known is None:
        known = of_mesh[tuple(placements)] = _made_layout(*_ranks_of(mesh), tuple(placements))
    return known


def _made_layout(shape: tuple[int, ...], ranks: tuple[int, ...], placements: tuple[Any, ...]) -> Layout:
    rows = tuple(_placement_row(p) for p in placements)
    key = (shape, ranks, rows)
    layout = _layouts.get(key)
    if layout is None:
        if len(_layouts) >= _CACHED_LAYOUTS_MAX:
            _layouts.clear()
        layout = _layouts[key] = Layout(shape, rows, ranks=ranks)
    return layout


@torch.no_grad()
def _without_grad(value: Any) -> torch.Tensor:
    local: torch.Tensor = value.to_local()
    return local


class LeafConverter:
    """Converts the leaves of one call; for a load it also knows what has to be copied back to devices."""

    def __init__(self, group: dist.ProcessGroup | None, writable: bool) -> None:
        self._group = group
        self._writable = writable
        self._staged: list[tuple[str, torch.Tensor, torch.Tensor]] = []

    @property
    def parts(self) -> Parts | None:
        """DTensors that State takes without a call of `convert` for each."""
        return None if DTensor is None else Parts(DTensor, torch.Tensor, functools.partial(layout_of, group=self._group))

    def convert(self, name: str, value: Any) -> Any:
        """A Shard or host tensor for a torch value; other values as they are."""
        if DTensor is not None and isinstance(value, DTensor):
            local = _without_grad(value) if torch.is_grad_enabled() else value.to_local()
            if hasattr(local, "wait"):
                local = local.wait()
            layout = layout_of(value.device_mesh, value.placements, self._group)
            return Shard(self._on_host(name, local), tuple(value.shape), layout=layout)
        if isinstance(value, RaggedTensor):
            local = value.to_local().detach()
            boxes = (((value.begin, *[0] * (value.dim() - 1)), tuple(local.shape)),)
            # A rank that has all rows of a tensor that others have none of says that it is cut, as they do.
            kind = "auto" if value.shard_axis is None else "sharded"
            return Shard(self._on_host(name, local), tuple(value.shape), boxes=boxes, kind=kind)
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.device.type != "cpu":
            return self._on_host(name, value)
        return value

    def _on_host(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_cpu:
            return tensor
        if tensor.device.type == "meta":
            raise InvalidArgumentError(f"{name} is on the meta device and has no memory; materialise it first",
                                       {"tensor": name})
        host = torch.empty(tensor.shape, dtype=tensor.dtype) if self._writable else tensor.detach().to("cpu")
        if self._writable:
            self._staged.append((name, host, tensor))
        return host

    def copy_back(self, missing: Sequence[str]) -> None:
        """After a load: fills the tensors on devices, except those that were not stored."""
        absent = set(missing)
        with torch.no_grad():
            for name, host, tensor in self._staged:
                if name not in absent:
                    tensor.copy_(host)
