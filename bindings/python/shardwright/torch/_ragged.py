# SPDX-License-Identifier: Apache-2.0
"""RaggedTensor: a tensor of which each rank has some rows, where no rule of the mesh says how many.

A DTensor cannot stand for that: its placements are rules, so torch would take the rows of a ragged rank for those that
torch.chunk gives it. This one has the shape of the whole tensor as a DTensor has, and says itself which rows it holds: to
shardwright, and to torch.distributed.checkpoint and what is written against its planners.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import return_and_correct_aliasing

if TYPE_CHECKING:
    from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex
    from torch.distributed.checkpoint.planner import WriteItem
    from torch.distributed.device_mesh import DeviceMesh

_aten = torch.ops.aten
# Of each element by itself, though torch has no tag that says so.
_ELEMENTWISE = {_aten.detach, _aten.alias, _aten.clone, _aten._to_copy, _aten.copy_, _aten.zero_, _aten.fill_, _aten.zeros_like,
                _aten.ones_like, _aten.full_like, _aten.empty_like}
_NORMS = {_aten.linalg_vector_norm, _aten._foreach_norm}


class RaggedTensor(torch.Tensor):
    """Made by fully_shard with layout="ragged", for parameters, their gradients and what optimizers keep of them.

    It takes part in what computes each element by itself, with others of the same rows, with whole tensors and with numbers;
    and in norms, which are those of the whole tensor and collective over the shard axis. Other functions of torch raise
    NotImplementedError: they are for `to_local()` or `full_tensor()`.
    """

    _local_tensor: torch.Tensor
    device_mesh: DeviceMesh
    shard_axis: int | None
    begin: int

    @staticmethod
    def __new__(cls, local: torch.Tensor, shape: Sequence[int], begin: int, mesh: DeviceMesh,
                shard_axis: int | None) -> RaggedTensor:
        """local: the rows from `begin` on; shard_axis: of the mesh, over which ranks have different rows, None = all have all."""
        strides = torch.empty(tuple(shape), device="meta").stride()
        made: RaggedTensor = torch.Tensor._make_wrapper_subclass(
            cls, torch.Size(shape), strides=strides, dtype=local.dtype, device=local.device)
        made._local_tensor, made.device_mesh, made.shard_axis, made.begin = local, mesh, shard_axis, begin
        return made

    @property
    def rows(self) -> tuple[int, int]:
        """First row of this rank and the one behind its last."""
        return self.begin, self.begin + self._local_tensor.size(0)

    def to_local(self) -> torch.Tensor:
        """The rows of this rank; the same memory."""
        return self._local_tensor

    def full_tensor(self) -> torch.Tensor:
        """The whole tensor. Collective over the shard axis."""
        if self.shard_axis is None:
            return self._local_tensor.clone()
        group, travels = self.device_mesh.get_group(self.shard_axis), _travelling(self)
        mine = torch.tensor(self.rows, device=travels)
        dist.all_gather(all_rows := [torch.empty_like(mine) for _ in range(group.size())], mine, group=group)
        bounds = [(int(first), int(last)) for first, last in all_rows]
        longest = max(last - first for first, last in bounds)
        padded = self._local_tensor.new_zeros((longest, *self.shape[1:]), device=travels)
        padded[:self._local_tensor.size(0)] = self._local_tensor.detach()
        dist.all_gather(parts := [torch.empty_like(padded) for _ in bounds], padded, group=group)
        return torch.cat([part[:last - first] for part, (first, last) in zip(parts, bounds, strict=True)]).to(self._local_tensor.device)

    def part_of(self, whole: torch.Tensor) -> torch.Tensor:
        """The rows of this rank of a whole tensor; a view."""
        return whole[self.begin:self.begin + self._local_tensor.size(0)]

    def like(self, local: torch.Tensor) -> RaggedTensor:
        """The same rows with other values."""
        return RaggedTensor(local, self.shape, self.begin, self.device_mesh, self.shard_axis)

    def is_cut_as(self, other: RaggedTensor) -> bool:
        """Whether both have the same rows of the same shape."""
        return self.shape == other.shape and self.rows == other.rows

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["_local_tensor"], (self.shape, self.begin, self.device_mesh, self.shard_axis)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], described: Any, size: Any, stride: Any) -> RaggedTensor:
        return RaggedTensor(inner["_local_tensor"], *described)

    # ---- what torch.distributed.checkpoint asks ----

    def _chunk(self) -> ChunkStorageMetadata:
        from torch.distributed.checkpoint.metadata import ChunkStorageMetadata
        offsets = torch.Size((self.begin, *[0] * (self.dim() - 1)))
        return ChunkStorageMetadata(offsets=offsets, sizes=self._local_tensor.size())

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [self._chunk()] if self._local_tensor.numel() > 0 else []

    def __create_write_items__(self, fqn: str, object: Any) -> list[WriteItem]:  # noqa: A002
        from torch.distributed.checkpoint.metadata import MetadataIndex, TensorProperties
        from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
        return [WriteItem(index=MetadataIndex(fqn, chunk.offsets), type=WriteItemType.SHARD,
                          tensor_data=TensorWriteData(chunk=chunk, properties=TensorProperties.create_from_tensor(self._local_tensor),
                                                      size=self.size()))
                for chunk in self.__create_chunk_list__()]

    def __get_tensor_shard__(self, index: MetadataIndex) -> torch.Tensor:
        return self._local_tensor

    # ---- computing ----

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        first, last = self.rows
        return f"RaggedTensor(rows {first} to {last} of {tuple(self.shape)}, {self._local_tensor})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        given = kwargs or {}
        packet = func.overloadpacket
        if packet in _NORMS:
            return _norms(func, args, given)
        name = packet.__name__
        if name.startswith(("_foreach_", "_fused_")) and "max" not in name:
            return _each_alike(func, args, given)
        if packet not in _ELEMENTWISE and torch.Tag.pointwise not in func.tags or torch.Tag.nondeterministic_seeded in func.tags:
            raise _refused(func)
        first = next(iter(_ragged_in((args, given))))
        written = [value for value, argument in zip(args, func._schema.arguments, strict=False)
                   if argument.alias_info is not None and argument.alias_info.is_write]
        written += [given[argument.name] for argument in func._schema.arguments
                    if argument.name in given and argument.alias_info is not None and argument.alias_info.is_write]
        if not all(isinstance(each, RaggedTensor) for each in written):
            raise _refused(func)
        local = func(*_map(args, lambda each: _local_beside(func, first, each)),
                     **_map(given, lambda each: _local_beside(func, first, each)))
        made = first.like(local) if isinstance(local, torch.Tensor) else local
        return return_and_correct_aliasing(func, args, given, made)  # type: ignore[no-untyped-call]


def _refused(func: Any) -> NotImplementedError:
    return NotImplementedError(f"{func} is not for a RaggedTensor, of which each rank has other rows: use to_local() for those of this "
                               "rank, or full_tensor()")


def _map(values: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(values, dict):
        return {key: _map(value, change) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(_map(each, change) for each in values)
    return change(values)


def _ragged_in(values: Any) -> Iterable[RaggedTensor]:
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        for each in values:
            yield from _ragged_in(each)
    elif isinstance(values, RaggedTensor):
        yield values


def _local_beside(func: Any, first: RaggedTensor, value: Any) -> Any:
    """What stands for an argument where the rows of `first` are computed."""
    if isinstance(value, RaggedTensor):
        if not first.is_cut_as(value):
            raise NotImplementedError(f"{func}: rows {first.rows} of {tuple(first.shape)} and rows {value.rows} of "
                                      f"{tuple(value.shape)} are not the same: take full_tensor() of one")
        return value._local_tensor
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    if value.shape != first.shape:
        raise _refused(func)
    return first.part_of(value)


def _each_alike(func: Any, args: Any, given: Any) -> Any:
    """Functions of lists of tensors, of which those at one position belong together."""
    lists = [value for value in args if isinstance(value, (list, tuple)) and next(iter(_ragged_in(value)), None) is not None]
    firsts = [next(iter(_ragged_in(row)), None) for row in zip(*lists, strict=True)]

    def local(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(firsts):
            return value
        return [each if first is None else _local_beside(func, first, each) for first, each in zip(firsts, value, strict=True)]

    made = func(*map(local, args), **{key: local(value) for key, value in given.items()})
    if not isinstance(made, (list, tuple)):
        return made
    return [each if first is None else first.like(each) for first, each in zip(firsts, made, strict=True)]


def _norms(func: Any, args: Any, given: Any) -> Any:
    """Of whole tensors."""
    if func.overloadpacket is _aten._foreach_norm:
        order = args[1] if len(args) > 1 else given.get("ord", 2)
        return [_norm(each, order, given.get("dtype")) for each in args[0]]
    if len(args) > 2 or given.get("dim") is not None or given.get("keepdim"):
        raise _refused(func)
    return _norm(args[0], args[1] if len(args) > 1 else given.get("ord", 2), given.get("dtype"))


def _travelling(tensor: RaggedTensor) -> torch.device:
    """Where bytes for the group lie: where the rows do; the current device of the mesh's kind where rows lie with the host."""
    home, kind = tensor._local_tensor.device, tensor.device_mesh.device_type
    return home if home.type == kind else torch.device(kind)


def _norm(tensor: torch.Tensor, order: float, dtype: torch.dtype | None) -> torch.Tensor:
    if not isinstance(tensor, RaggedTensor):
        whole: torch.Tensor = torch.linalg.vector_norm(tensor, order, dtype=dtype)
        return whole
    local, order = tensor._local_tensor.detach(), float(order)
    found = torch.linalg.vector_norm(local, order, dtype=dtype) if local.numel() > 0 else local.new_zeros((), dtype=dtype)
    if tensor.shard_axis is None:
        return found
    if math.isinf(order) and order < 0 and local.numel() == 0:
        found.fill_(math.inf)
    group, home = tensor.device_mesh.get_group(tensor.shard_axis), found.device
    found = found.to(_travelling(tensor))
    if math.isinf(order):
        dist.all_reduce(found, dist.ReduceOp.MAX if order > 0 else dist.ReduceOp.MIN, group=group)
        return found.to(home)
    if order != 0:
        found.pow_(order)
    dist.all_reduce(found, group=group)
    return (found if order == 0 else found.pow_(1 / order)).to(home)
