# SPDX-License-Identifier: Apache-2.0
"""TorchContext: the units of one model, made when its root runs forward for the first time."""
from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Mapping
from types import FrameType
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from ...hsdp import Hsdp
from ._backward import Backward
from ._placement import ContextMesh, distinct
from ._unit import ForwardEnd, TorchUnit

_all: weakref.WeakSet[TorchContext] = weakref.WeakSet()
_numbers = itertools.count()
_TRAVELLING = ("packed", "scattering", "replicating")


class ContextOptions(NamedTuple):
    """What the root was sharded with, for all units below it."""

    timeout: float | None
    prefetch_depth: int


class TorchContext:
    """Units in the order in which modules are defined, the root first."""

    def __init__(self, units: list[tuple[str, TorchUnit]], paths: Mapping[nn.Module, str], options: ContextOptions) -> None:
        """units: the root first, each with its name; paths: names of all modules from the root."""
        self.number = next(_numbers)
        self.units = [unit for _, unit in units]
        place = self.units[0].place
        for name, unit in units:
            if not unit.place.is_like(place):
                raise ValueError(f"{name} is sharded over {unit.place.mesh}, and {units[0][0]} over {place.mesh}: the modules of "
                                 "one model share a mesh")
        self._forward_end = ForwardEnd()
        secondary = {unit.reshard_after_forward for unit in self.units
                     if unit.reshard_after_forward is not None and not isinstance(unit.reshard_after_forward, bool)}
        for name, unit in units:
            unit.name = name
            unit.join(self.units, paths, self._forward_end)
        apart = any(unit.reduces_apart for unit in self.units)
        self._meshes: list[ContextMesh] = []
        self.cores: list[Hsdp] = []  # one for each mesh
        places = distinct([place, *(param.place for unit in self.units for param in unit.params)])
        for each in places:
            # All of a mesh's ranks are no neighbours: their units reshard.
            mesh = ContextMesh(each, {size for size in secondary if size < each.shard_size}, apart, options.timeout)
            self._meshes.append(mesh)
            self.cores.append(Hsdp(mesh.mesh, device=each.device.library, settle=each.device.settle, shard_axis=each.shard_axis,
                                   replicate_axis=each.replicate_axis, unordered=not mesh.sums_in_order,
                                   prefetch_depth=options.prefetch_depth, timeout=options.timeout))
        for unit in self.units:
            unit.attach(list(zip(places, self.cores, strict=True)))
        for unit in self.units:
            unit.apply_prefetch()
        self.set_reduce_buffers()
        self.is_last_backward = True
        self.finalizes_by_hand = False
        self.open_finalizations = 0  # that nobody has waited for
        self.iteration = 0  # counts resets
        self._waits_for_end = False  # the end of a backward will be told
        _all.add(self)

    def set_reduce_buffers(self) -> None:
        """Units have one limit together."""
        for core in self.cores:
            core.set(max_inflight_reduce=max(unit.reduce_buffers for unit in self.units))

    def check_begin(self) -> None:
        """RuntimeError where the iteration before has not ended."""
        if self._waits_for_end:
            raise RuntimeError("a backward did not come to its end: call reset_iter_state() on the root, on all ranks")
        if self.open_finalizations > 0:
            raise RuntimeError("a finalization of backward is not waited for: call wait() of what finalize_backward gave")

    def begin_forward(self) -> None:
        """The root runs: what an optimizer changed is seen."""
        for unit in self.units:
            unit.forget_forward()
        if any([unit.look_for_changes() for unit in self.units]):
            for core in self.cores:
                core.step_event()
            for unit in self.units:
                unit.follow_state()

    def end_forward(self, root: TorchUnit, counts: bool) -> None:
        """The root has run: units that wait for more of their modules do not. Its own may be one of a list that is not over."""
        for unit in self.units:
            if unit is not root:
                unit.end_forward(counts)
        if counts:
            self._forward_end.is_over()

    def begin_backward(self, engine: FrameType | None) -> None:
        """Once per backward: hears how it ends. engine: what runs it."""
        if self._waits_for_end:
            return
        self._waits_for_end = True
        torch.autograd.Variable._execution_engine.queue_callback(
            Backward(self.end_backward, functools.partial(self._abort_backward, self.iteration), engine))

    def _abort_backward(self, iteration: int, message: str) -> None:
        """Of a backward that raised, unless the context has been reset since."""
        if iteration == self.iteration:
            self.abort(message)

    def end_backward(self) -> None:
        """The end of a backward, unless the host ends it."""
        self._waits_for_end = False
        if not self.finalizes_by_hand:
            self.finalize()

    def finalize(self) -> None:
        """Reduces what no module has handed over, and gives gradients to the sharded parameters."""
        # Reduced by the library, in an order that does not depend on which of them this rank has used.
        for unit in self.units:
            unit.hand_over()
        for core in self.cores:
            core.set(is_last_backward=self.is_last_backward)
            core.finalize_backward()
        for unit in self.units:
            unit.follow_state()
            if self.is_last_backward:
                unit.take_gradients()
        if self.is_last_backward:
            for core in self.cores:
                core.zero_grads()

    def wait_for_reductions(self) -> None:
        """Waits for what is under way; gradients come with the last backward."""
        for core in self.cores:
            core.set(is_last_backward=True)
            core.finalize_backward()
            core.set(is_last_backward=self.is_last_backward)

    def has_reductions(self) -> bool:
        """Whether sums of gradients are on their way."""
        return any(unit.core is not None and unit.core.grad_state in _TRAVELLING for unit in self.units)

    def abort(self, message: str) -> None:
        """Other ranks raise an error with the message; this context has failed."""
        for mesh in self._meshes:
            mesh.abort(f"rank {dist.get_rank()}: {message}")

    def recover(self) -> None:
        """After a failed iteration, on all ranks."""
        self._waits_for_end = False
        self.open_finalizations = 0
        self.iteration += 1
        for mesh, core in zip(self._meshes, self.cores, strict=True):
            mesh.connect()
            core.reset()
        for unit in self.units:
            unit.forget_forward()
            for each in unit.params:
                each.drop_gradients()
            unit.follow_state()


def context_of(root: nn.Module, units: list[tuple[str, TorchUnit]], options: ContextOptions) -> TorchContext:
    """The context of the units below a root. RuntimeError where some belong to another."""
    for name, unit in units:
        if unit.core is not None:
            raise RuntimeError(f"{name or type(root).__name__} ran forward by itself before the module around it "
                               f"({type(root).__name__}) did: run the outermost one first")
    return TorchContext(units, _paths(root, [unit for _, unit in units]), options)


def _paths(root: nn.Module, units: list[TorchUnit]) -> dict[nn.Module, str]:
    """Names of modules from the root; of a list that nothing is around, the position in it comes first."""
    paths = {each: path for path, each in root.named_modules()}
    for unit in units:
        if not all(each in paths for each in unit.modules):
            for number, listed in enumerate(unit.modules):
                paths |= {each: f"{number}.{path}".rstrip(".") for path, each in listed.named_modules()}
    return paths


def all_contexts() -> list[TorchContext]:
    """Contexts of this process, in the order in which they were made."""
    return sorted(_all, key=lambda each: each.number)
