# SPDX-License-Identifier: Apache-2.0
"""Shards that one rank of a group has read, to the other ranks of the group that want them.

Each algorithm sends a shard only to ranks that hold it, straight into memory of the request where that is contiguous and of
the shard's dtype. What is held beside that on a rank: "broadcast", one shard; "gather_rounds", one shard from each rank;
"gather_object", all shards that pass, as pickles. All ranks of the group call with the same distribution.
"""
from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ...errors import UnimplementedError
from ._exchange import group_rank, group_size
from .distribution import ShardDistribution, ShardId
from .errors import CheckpointingException, failure
from .high_precision import dequantised, is_float8tensor
from .sharded_tensor import data_shape


def check_exchange_algo(name: str) -> None:
    """UnimplementedError, a NotImplementedError, for an algorithm that there is not."""
    if name not in _ALGORITHMS:
        raise UnimplementedError(f"Unrecognized gather algorithm: {name}; there are {', '.join(_ALGORITHMS)}",
                                 {"parameter": "exchange_algo"})


def exchange_by_distribution(loaded_tensors: Mapping[ShardId, torch.Tensor], unloaded_shards: Mapping[ShardId, Any],
                             shard_distribution: ShardDistribution | None, parallelization_group: dist.ProcessGroup | None = None,
                             exchange_algo: str = "broadcast") -> dict[ShardId, torch.Tensor]:
    """The tensors of all shards of this rank: those that it has loaded, and those that others have, in the memory of
    `unloaded_shards` where there is some. Collective in the group.

    Args:
        loaded_tensors: what this rank owns by the distribution.
        unloaded_shards: ShardedTensors of this rank that another one owns.
    Raises:
        CheckpointingException: no distribution, or a shard that no rank of the group has read.
        UnimplementedError: an unknown algorithm.
    """
    check_exchange_algo(exchange_algo)
    if shard_distribution is None:
        raise failure(CheckpointingException, "Cannot exchange tensors without a distribution", parameter="shard_distribution")
    transfers = _transfers(shard_distribution)
    ends = _Ends(parallelization_group, loaded_tensors, unloaded_shards, shard_distribution)
    _ALGORITHMS[exchange_algo](transfers, ends)
    missing = [shard for shard in unloaded_shards if shard not in ends.received]
    if missing:
        raise failure(CheckpointingException, f"Missing shards after fully parallel loading: {missing[:5]}", key=missing[0][0])
    return {**loaded_tensors, **ends.received}


class _Transfer(NamedTuple):
    shard: ShardId
    owner: int
    others: list[int]


def _transfers(distribution: ShardDistribution) -> list[_Transfer]:
    """What has to be sent, in the order of the distribution, which is the same on all ranks."""
    found = []
    for shard, owner in distribution.main_rank_for_shard.items():
        others = [rank for rank in distribution.all_ranks_for_shard[shard] if rank != owner]
        if others:
            found.append(_Transfer(shard, owner, others))
    return found


class _Ends:
    """This rank's end of an exchange: tensors as the group moves them, and where they go."""

    def __init__(self, group: dist.ProcessGroup | None, loaded: Mapping[ShardId, torch.Tensor], wanted: Mapping[ShardId, Any],
                 distribution: ShardDistribution) -> None:
        self.group, self.rank, self.size = group, group_rank(group), group_size(group)
        self.received: dict[ShardId, torch.Tensor] = {}
        self._loaded, self._wanted, self._distribution = loaded, wanted, distribution
        self._device = _device_of(group)

    def peer(self, rank: int) -> int:
        """A rank of the group as torch's point-to-point operations count."""
        return rank if self.group is None else dist.get_global_rank(self.group, rank)

    def outgoing(self, shard: ShardId) -> torch.Tensor:
        """A shard as it is sent."""
        if shard not in self._loaded:
            raise failure(CheckpointingException, f"Missing loaded item shard: {shard}", key=shard[0])
        tensor = dequantised(self._loaded[shard]).detach()
        wire: torch.Tensor = tensor.to(self._distribution.shard_to_metadata[shard].dtype)
        return self._moved(wire).contiguous()

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if self._device is None or tensor.device.type == self._device.type else tensor.to(self._device)

    def incoming(self, shard: ShardId) -> torch.Tensor:
        """Memory that a shard is received into; `arrived` is told when it has been."""
        data = self._destination(shard)
        wanted = self._wanted[shard]
        direct = data.is_contiguous() and not is_float8tensor(data) and data.dtype == wanted.dtype
        if direct and (self._device is None or data.device.type == self._device.type):
            return data
        return torch.empty(data_shape(wanted), dtype=wanted.dtype, device=self._device or data.device)

    def _destination(self, shard: ShardId) -> torch.Tensor:
        if shard not in self.received:
            wanted = self._wanted[shard]
            made = torch.empty(data_shape(wanted), dtype=wanted.dtype) if wanted.data is None else wanted.data.detach()
            self.received[shard] = made
        return self.received[shard]

    def arrived(self, shard: ShardId, tensor: torch.Tensor) -> None:
        """Puts what was received where it belongs."""
        data = self._destination(shard)
        if tensor is not data:
            data.copy_(tensor)


def _device_of(group: dist.ProcessGroup | None) -> torch.device | None:
    """Where tensors have to lie that a group moves; None = on the host, or wherever the group moves both."""
    kinds = (dist.group.WORLD if group is None else group)._device_types  # type: ignore[union-attr]
    if torch.device("cpu") in kinds:
        return torch.device("cpu") if len(kinds) == 1 else None
    return torch.device("cuda", torch.cuda.current_device())


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor: groups do not know all dtypes."""
    return tensor.reshape(-1).view(torch.uint8)


# ---- broadcast: shard by shard, along a tree of the ranks that hold it ----

def _broadcast(transfers: list[_Transfer], ends: _Ends) -> None:
    for shard, owner, others in transfers:
        along = [owner, *others]
        if ends.rank not in along:
            continue
        tensor = ends.outgoing(shard) if ends.rank == owner else ends.incoming(shard)
        if len(along) == ends.size:
            dist.broadcast(_bytes_of(tensor), ends.peer(owner), group=ends.group)
        else:
            _along_tree(tensor, along, ends)
        if ends.rank != owner:
            ends.arrived(shard, tensor)


def _along_tree(tensor: torch.Tensor, along: list[int], ends: _Ends) -> None:
    """From the first rank to all others in as many steps as their number has binary digits."""
    here, reach = along.index(ends.rank), 1
    while reach < len(along):
        if here < reach and here + reach < len(along):
            dist.send(_bytes_of(tensor), ends.peer(along[here + reach]), group=ends.group)
        elif reach <= here < 2 * reach:
            dist.recv(_bytes_of(tensor), ends.peer(along[here - reach]), group=ends.group)
        reach *= 2


# ---- gather_rounds: in each round one shard of every rank ----

def _gather_rounds(transfers: list[_Transfer], ends: _Ends) -> None:
    queues: dict[int, list[_Transfer]] = {}
    ordered = sorted(transfers, key=lambda one: str(ends._distribution.shard_to_metadata[one.shard].dtype))
    for transfer in ordered:
        queues.setdefault(transfer.owner, []).append(transfer)
    for number in range(max((len(queue) for queue in queues.values()), default=0)):
        _round([queue[number] for _, queue in sorted(queues.items()) if number < len(queue)], ends)


def _round(transfers: list[_Transfer], ends: _Ends) -> None:
    operations, arriving = [], []
    for shard, owner, others in transfers:
        if ends.rank == owner:
            tensor = ends.outgoing(shard)
            operations += [dist.P2POp(dist.isend, _bytes_of(tensor), ends.peer(other), ends.group) for other in others]
        elif ends.rank in others:
            tensor = ends.incoming(shard)
            arriving.append((shard, tensor))
            operations.append(dist.P2POp(dist.irecv, _bytes_of(tensor), ends.peer(owner), ends.group))
    for work in dist.batch_isend_irecv(operations) if operations else ():
        work.wait()
    for shard, tensor in arriving:
        ends.arrived(shard, tensor)


# ---- gather_object: everything at once ----

def _gather_object(transfers: list[_Transfer], ends: _Ends) -> None:
    pairs: dict[tuple[int, int], list[ShardId]] = {}
    for shard, owner, others in transfers:
        for other in others:
            pairs.setdefault((owner, other), []).append(shard)
    for (owner, other), shards in sorted(pairs.items()):
        if ends.rank == owner:
            _send_object({shard: ends.outgoing(shard).cpu() for shard in shards}, other, ends)
        elif ends.rank == other:
            for shard, tensor in _received_object(owner, ends).items():
                if shard in ends.received:
                    raise failure(CheckpointingException, f"Duplicate shard ids loaded by different ranks: {shard}", key=shard[0])
                ends.arrived(shard, tensor)


def _send_object(value: Any, to: int, ends: _Ends) -> None:
    stream = io.BytesIO()
    torch.save(value, stream)
    content = torch.frombuffer(stream.getbuffer(), dtype=torch.uint8)
    for tensor in (torch.tensor([len(content)]), content):
        dist.send(ends._moved(tensor), ends.peer(to), group=ends.group)


def _received_object(owner: int, ends: _Ends) -> dict[ShardId, torch.Tensor]:
    device = ends._device or torch.device("cpu")
    count = torch.zeros(1, dtype=torch.int64, device=device)
    dist.recv(count, ends.peer(owner), group=ends.group)
    content = torch.empty(int(count.item()), dtype=torch.uint8, device=device)
    dist.recv(content, ends.peer(owner), group=ends.group)
    stream = io.BytesIO(content.cpu().numpy().tobytes())
    found: dict[ShardId, torch.Tensor] = torch.load(stream, weights_only=True)
    return found


_ALGORITHMS: dict[str, Callable[[list[_Transfer], _Ends], None]] = {
    "broadcast": _broadcast, "gather_rounds": _gather_rounds, "gather_object": _gather_object}
