# SPDX-License-Identifier: Apache-2.0
"""UnitDevice: where the units of a model live, the host or a GPU. All that differs between them is here: where torch allocates,
what has to end before torch hands memory over to the library, and what carries tensors to other ranks.

What the library does has ended when its call returns, so nothing has to wait after one. What torch does on a GPU has not ended when
its call returns: `settle` waits for it, and the library's context calls that before each call that touches memory of both.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.utils import _apply_to_tensors

from ... import hsdp
from ...context import shared
from ...errors import ShardwrightError, UnavailableError
from .. import _nccl
from .._choice import communicator_over

_HINT = "fully_shard(..., mesh=init_device_mesh('cpu', ...)) trains on the CPU"


class Transport(NamedTuple):
    """What carries the tensors of units: `open(group, use, seconds)` is collective over the ranks of a group. Not `in_order`: sums
    are in an order of its own, and results depend on it."""

    open: Callable[[dist.ProcessGroup, str, float | None], hsdp.Communicator]
    in_order: bool


class UnitDevice:
    """The host, and what others have in common with it."""

    library: hsdp.Device | None = None
    """The device of the library's contexts; None = the host."""

    def __init__(self, device: torch.device) -> None:
        self.device = device  # of whole parameters and gradients, and of shards that are not offloaded

    def settle(self) -> None:
        """What torch was told to do on this thread has ended. The host does it at once."""

    def wait_for(self, event: Any) -> None:
        """`settle` waits for an event of torch, too."""
        raise NotImplementedError("there are no events on the CPU")

    def inputs(self, values: Any) -> Any:
        """Tensors among the arguments of a model, where it computes."""
        return values

    def transport(self, mesh: DeviceMesh) -> Transport:
        """Between the ranks of a mesh: through memory of the host, from which the library copies where units live elsewhere."""
        return Transport(communicator_over, in_order=True)

    def home(self, offloads: bool) -> torch.device:
        """Where shards and their gradients lie."""
        return _HOST if offloads else self.device


class CudaDevice(UnitDevice):
    """A GPU by its number in this process."""

    def __init__(self, index: int) -> None:
        super().__init__(torch.device("cuda", index))
        self._index = index
        self.library = _opened(index)

    def settle(self) -> None:
        """Also in backward, where torch makes the stream of the forward the current one."""
        torch.cuda.current_stream(self.device).synchronize()

    def wait_for(self, event: Any) -> None:
        """The current stream does, for which `settle` waits."""
        torch.cuda.current_stream(self.device).wait_event(event)

    def inputs(self, values: Any) -> Any:
        """Moved there."""
        return _apply_to_tensors(lambda each: each.to(self.device), values)

    def transport(self, mesh: DeviceMesh) -> Transport:
        """NCCL where the mesh has it for GPUs."""
        if any(_nccl.has_nccl(mesh.get_group(axis)) for axis in range(mesh.ndim)):
            return Transport(functools.partial(_nccl.open_communicator, device=self._index), in_order=False)
        return super().transport(mesh)


def _cuda(index: int | None) -> UnitDevice:
    """The GPU of that number; None = torch's current one. UnavailableError that says what is missing."""
    if not torch.cuda.is_available():
        raise UnavailableError("fully_shard was to put units on a GPU, and torch finds none here (torch.cuda.is_available() is False): "
                               f"run it where a GPU, its driver and a torch for CUDA are; {_HINT}", {"resource": "cuda"})
    return CudaDevice(torch.cuda.current_device() if index is None else index)


@functools.cache
def _opened(index: int) -> hsdp.Device:
    """One for all models of the process."""
    try:
        shared().load_plugin(_nccl.PLUGIN)
        return hsdp.PluginDevice(_nccl.PLUGIN, json.dumps({"device": index}), context=shared())
    except ShardwrightError as e:
        raise UnavailableError(f"units on cuda:{index} need the plugin libshardwright_cuda.so, and it cannot be used: {e}; build "
                               f"shardwright where CUDA 13 is (docs/install.md, GPUs and NCCL); {_HINT}", {"resource": "cuda"}) from e


_HOST = torch.device("cpu")
_KINDS: dict[str, Callable[[int | None], UnitDevice]] = {"cpu": lambda _: UnitDevice(_HOST), "cuda": _cuda}


def unit_device(kind: str, index: int | None) -> UnitDevice:
    """By the name of a kind of device in torch; index None = the one that is current. NotImplementedError for other kinds."""
    if kind not in _KINDS:
        raise NotImplementedError(f"fully_shard runs on the CPU and on GPUs of CUDA, found {kind}")
    return _KINDS[kind](index)


def default_kind() -> str:
    """Of a mesh that nobody has given: GPUs where there are some and the default process group has NCCL for them. Ranks are
    alike."""
    return "cuda" if torch.cuda.is_available() and _nccl.has_nccl(dist.group.WORLD) else "cpu"
