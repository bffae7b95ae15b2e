# SPDX-License-Identifier: Apache-2.0
"""HSDPModule: what modules can after fully_shard."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ...errors import InvalidArgumentError
from ...hsdp import Work
from ._context import TorchContext
from ._groups import CoreWorks
from ._state import ModuleState, state_of
from ._unit import TorchUnit


class UnshardHandle:
    """A gather under way."""

    def __init__(self, unit: TorchUnit, work: Work | CoreWorks) -> None:
        self._unit, self._work = unit, work

    def wait(self) -> None:
        """Waits for the parameters; does nothing where the module was resharded since, and at further calls."""
        self._unit.wait_unsharded(self._work)


class FinalizeHandle:
    """A backward that waits for its end."""

    def __init__(self, context: TorchContext) -> None:
        self._context = context
        self._iteration = context.iteration
        context.open_finalizations += 1
        self._is_over = False

    def wait(self) -> None:
        """Ends it; nothing at further calls."""
        if self._is_over:
            return
        self._is_over = True
        if self._iteration != self._context.iteration:  # reset_iter_state has dropped it
            return
        self._context.open_finalizations -= 1
        self._context.finalize()


class HSDPModule:
    """Methods of a module that fully_shard was called with; its class becomes `HSDP` and the name of its own. Settings are equal
    on all ranks and hold from the call on; `recurse`: for units inside of it, too."""

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gathers the parameters of this module; with `async_op` waiting for the result ends it."""
        _boolean("async_op", async_op)
        state = _own(self)
        state.begin()
        work = state.unit.unshard(async_op)
        return None if work is None else UnshardHandle(state.unit, work)

    def reshard(self) -> None:
        """Frees the whole parameters of this module; a gather under way is dropped."""
        _own(self).unit.reshard()

    def set_requires_gradient_sync(self, requires_grad_sync: bool | None = None, *, recurse: bool = True,
                                   requires_gradient_sync: bool | None = None) -> None:
        """False: gradients stay on this rank, unsharded, until a backward with True. Both names are one argument: HyperParallel's
        and torch's."""
        given = [value for value in (requires_grad_sync, requires_gradient_sync) if value is not None]
        if len(given) != 1:
            raise InvalidArgumentError(f"requires_gradient_sync is given {len(given)} times; it must be once, True or False")
        self._set(recurse, requires_gradient_sync=_boolean("requires_gradient_sync", given[0]))

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """False: sums over the shard axis wait for a backward with True before they go on to the replicas."""
        self._set(recurse, requires_all_reduce=_boolean("requires_all_reduce", requires_all_reduce))

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """False: more backwards follow before the optimizer; gradients come with the last one."""
        _own(self).begin().is_last_backward = _boolean("is_last_backward", is_last_backward)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are freed after forward, also of a root."""
        self._set(recurse, reshard_after_forward=_boolean("reshard_after_forward", reshard_after_forward))

    def set_reshard_after_backward(self, reshard_after_backward: bool, recurse: bool = True) -> None:
        """Whether parameters are freed after backward; if not, they are when the optimizer has changed them."""
        self._set(recurse, reshard_after_backward=_boolean("reshard_after_backward", reshard_after_backward))

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """False: backward of this module needs no parameters, as that of an embedding."""
        self._set(False, unshard_in_backward=_boolean("unshard_in_backward", unshard_in_backward))

    def set_reduce_op_type(self, reduce_op_type: str, *, recurse: bool = False) -> None:
        """"avg" or "sum" over all ranks that share data."""
        words = {"avg": "average", "sum": "sum"}
        word = reduce_op_type.lower() if isinstance(reduce_op_type, str) else ""
        if word not in words:
            raise InvalidArgumentError(f"reduce_op_type is {reduce_op_type!r}; it must be 'avg' or 'sum'")
        self._set(recurse, reduce_op=words[word])

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What averages are divided by, in place of the number of ranks that share data."""
        if not factor > 0:
            raise InvalidArgumentError(f"the divide factor is {factor!r}; it must be above 0")
        self._set(False, divide_factor=float(factor))

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """The older name of set_gradient_divide_factor."""
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Sums are what travels here in any case, and are scaled afterwards: both values give the same bits."""
        _boolean("enable", enable)

    def set_keep_unsharded_storage(self, keep: bool, *, recurse: bool = True) -> None:
        """Whether memory of whole parameters is kept while they are sharded."""
        _boolean("keep", keep)
        for state in _states_of(self, recurse):
            state.unit.keeps_memory = keep

    def set_reduce_scatter_unused_params(self, enable: bool, *, recurse: bool = True) -> None:
        """True (the default): parameters without a gradient count as zero. False: they are left out, and ranks must agree."""
        self._set(recurse, unused_policy="zero" if _boolean("enable", enable) else "skip")

    def set_reduce_scatter_max_input_buffers(self, count: int, *, recurse: bool = True) -> None:
        """How many units' packed gradients live at once; the whole model has the largest number of any of its modules."""
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"the number of buffers is {count!r}; it must be an integer")
        if count < 1:
            raise InvalidArgumentError(f"the number of buffers is {count}; it must be 1 or above")
        for state in _states_of(self, recurse):
            state.unit.reduce_buffers = count
            if state.context is not None:
                state.context.set_reduce_buffers()

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """True: gradients of the whole model travel over groups of their own, beside gathers. Before its first forward, else
        RuntimeError; on all ranks."""
        for state in _states_of(self, recurse):
            if state.context is not None:
                raise RuntimeError("groups are made by the first forward: call set_separate_reduce_scatter_group before it")
            state.unit.reduces_apart = _boolean("enable", enable)

    def set_all_reduce_hook(self, hook: Callable[[torch.Tensor], None], *, stream: Any = None) -> None:
        """Calls `hook` with the gradients of this rank's shards of this unit as one tensor of one dimension, after they were
        summed over the shard axis and before they become gradients of the parameters; what the hook leaves there is taken. For
        replicas that the mesh does not know. InvalidArgumentError on a mesh that has replicas, or with a stream."""
        if stream is not None:
            raise InvalidArgumentError("there are no streams on the CPU, and on a GPU the hook runs on torch's current one")
        if _own(self).unit.place.replicate_axis is not None:
            raise InvalidArgumentError("the mesh of this module has replicas, over which gradients are summed already")
        _own(self).unit.all_reduce_hook = hook

    def set_manual_backward_finalization(self, enabled: bool) -> None:
        """True: gradients come when finalize_backward is called, not at the end of backward. Of the root."""
        _own(self).begin().finalizes_by_hand = _boolean("enabled", enabled)

    def finalize_backward(self, *, async_op: bool = False) -> FinalizeHandle | None:
        """Ends the backward by hand; with `async_op` waiting for the result does. Forward before that is a RuntimeError."""
        _boolean("async_op", async_op)
        context = _own(self).begin()
        if not context.finalizes_by_hand:
            raise RuntimeError("backward ends by itself: call set_manual_backward_finalization(True) on the root first")
        handle = FinalizeHandle(context)
        if async_op:
            return handle
        handle.wait()
        return None

    def set_post_optim_event(self, event: Any) -> None:
        """On a GPU: an optimizer on a stream of its own has ended with this event, recorded before the call; what follows on the
        current stream comes behind it. On the CPU an optimizer has ended when it returns."""
        if event is not None:
            _own(self).unit.place.device.wait_for(event)

    def set_custom_all_gather(self, comm: Any) -> None:
        """Not there."""
        raise NotImplementedError("gathers go through communicators of shardwright.hsdp")

    def set_custom_reduce_scatter(self, comm: Any) -> None:
        """Not there."""
        raise NotImplementedError("reductions go through communicators of shardwright.hsdp")

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Not there."""
        raise NotImplementedError("memory of process groups is not used")

    def set_symm_mem_for_comm(self, backend: str) -> None:
        """Not there."""
        raise NotImplementedError("symmetric memory is not used")

    def set_modules_to_forward_prefetch(self, modules: Sequence[HSDPModule]) -> None:
        """Modules whose parameters are gathered while this one computes, in place of what ran next the last time."""
        self._set_prefetch(modules, "forward")

    def set_modules_to_backward_prefetch(self, modules: Sequence[HSDPModule]) -> None:
        """The same in backward."""
        self._set_prefetch(modules, "backward")

    def zero_grads(self) -> None:
        """Not for torch."""
        raise RuntimeError("zero_grads is for frameworks that keep gradients in the cell: call optimizer.zero_grad()")

    def reset_iter_state(self) -> None:
        """Recovery after an iteration that failed, on all ranks and on the root: gradients are dropped, groups are made anew,
        parameters are those of the last step."""
        context = _own(self).context
        if context is not None:
            context.recover()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As that of torch, with values that are DTensors, parts of this rank, or whole tensors. InvalidArgumentError for
        DTensors of other placements of which this rank has not all, and for shapes that are neither."""
        return super().load_state_dict(state_dict, strict=strict, assign=assign)  # type: ignore[misc]

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As that of torch, always of the sharded parameters."""
        return super().state_dict(*args, **kwargs)  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("modules that are sharded are not copied: copy before fully_shard")

    def _set(self, recurse: bool, **values: Any) -> None:
        for state in _states_of(self, recurse):
            state.unit.set(**values)

    def _set_prefetch(self, modules: Sequence[HSDPModule], phase: str) -> None:
        if not isinstance(modules, (list, tuple)) or not all(isinstance(each, HSDPModule) for each in modules):
            raise InvalidArgumentError(f"modules to gather ahead are a list of modules that fully_shard was called with, found "
                                       f"{modules!r}")
        _own(self).unit.set_prefetch([_own(each).unit for each in modules], phase)


def states_below(module: nn.Module) -> list[ModuleState]:
    """Of the module and of all inside of it."""
    return [state for each in module.modules() if (state := state_of(each)) is not None]


def _states_of(module: Any, recurse: bool) -> list[ModuleState]:
    return states_below(_module(module)) if recurse else [_own(module)]


def reshard_all(module: nn.Module) -> None:
    """All units below have their shards, and modules refer to them."""
    for state in states_below(module):
        state.unit.reshard()


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name} is {value!r}; it must be True or False", {"parameter": name})
    return value


def _module(module: Any) -> nn.Module:
    assert isinstance(module, nn.Module)
    return module


def _own(module: Any) -> ModuleState:
    state = state_of(_module(module))
    if state is None:
        raise InvalidArgumentError(f"fully_shard was not called with this {type(module).__name__}")
    return state
