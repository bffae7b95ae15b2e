# SPDX-License-Identifier: Apache-2.0
"""What runs around forward and backward of a module."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributed.utils import _apply_to_tensors
from torch.utils.checkpoint import _StopRecomputationError

from ._state import ModuleState


def install(module: nn.Module, state: ModuleState) -> None:
    """Adds the hooks of a unit to one of its modules."""
    module.register_forward_pre_hook(lambda _, args, kwargs: _pre_forward(state, args, kwargs), prepend=True, with_kwargs=True)
    module.register_forward_hook(lambda *args: _post_forward(state, args[-1]))
    module.register_forward_hook(lambda *args: _tell_others(state, args[-1]), always_call=True)


def in_backward() -> bool:
    """Whether autograd runs backward on this thread, as while activations are computed again."""
    return bool(torch._C._current_graph_task_id() != -1)


def forward_method(module: nn.Module, state: ModuleState, name: str) -> None:
    """A method of the module runs as forward does."""
    method = getattr(module, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            args, kwargs = _pre_forward(state, args, kwargs)
            return _post_forward(state, method(*args, **kwargs))
        except BaseException:
            _tell_others(state, None)
            raise

    setattr(module, name, run)


class _AfterBackward(torch.autograd.Function):
    """Hands inputs through; its backward runs when that of the module around which it stands has ended."""

    @staticmethod
    def forward(ctx: Any, call: Callable[[], None], *tensors: torch.Tensor) -> Any:
        ctx.call = call
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.call()
        return (None, *grads)


def _cast(values: Any, dtype: torch.dtype | None) -> Any:
    if dtype is None:
        return values
    return _apply_to_tensors(lambda each: each.to(dtype) if each.is_floating_point() else each, values)


def _pre_forward(state: ModuleState, args: Any, kwargs: Any) -> Any:
    context = state.begin()
    recompute = in_backward()
    begins = state.is_root and not recompute
    if begins:
        context.check_begin()
    state.runs = True
    if begins:
        context.begin_forward()
        args, kwargs = state.unit.place.device.inputs((args, kwargs))
    policy = state.unit.policy
    if policy.cast_forward_inputs:
        args, kwargs = _cast((args, kwargs), policy.param_dtype)
    counts = torch.is_grad_enabled() and not recompute
    is_last_backward = state.unit.pre_forward(state.module, counts, recompute)
    if not torch.is_grad_enabled() or not is_last_backward:
        return args, kwargs
    found: list[torch.Tensor] = []
    _apply_to_tensors(lambda each: found.append(each) if each.requires_grad else None, (args, kwargs))
    if not found:
        return args, kwargs
    passed = iter(_AfterBackward.apply(state.unit.post_backward, *found))
    return _apply_to_tensors(lambda each: next(passed) if each.requires_grad else each, (args, kwargs))


def _post_forward(state: ModuleState, output: Any) -> Any:
    state.runs = False
    recompute = in_backward()
    counts = torch.is_grad_enabled() and not recompute
    if torch.is_grad_enabled():
        before = _BeforeBackward(state)
        _apply_to_tensors(before.watch, output)
    if state.is_root and not recompute:
        state.begin().end_forward(state.unit, counts)
    state.unit.post_forward(state.module, counts, recompute)
    return _cast(output, state.unit.policy.output_dtype)


def _tell_others(state: ModuleState, output: Any) -> None:
    """Where forward of the root raised, ranks that wait for this one raise its cause."""
    raised = sys.exc_info()[1]
    if isinstance(raised, _StopRecomputationError):  # torch has computed again all that it needs
        return
    began, state.runs = state.runs, False
    if raised is not None and output is None and began and state.is_root and state.context is not None:
        state.context.abort(f"forward raised {type(raised).__name__}: {raised}")


class _BeforeBackward:
    """Of one forward: the first gradient of its outputs that comes in a backward gathers the parameters."""

    def __init__(self, state: ModuleState) -> None:
        self._state = state
        self._task = -1  # the backward that has gathered

    def watch(self, output: torch.Tensor) -> torch.Tensor:
        """Looks at the gradients of an output."""
        if output.requires_grad:
            output.register_hook(self._gather)  # type: ignore[no-untyped-call]
        return output

    def _gather(self, grad: torch.Tensor) -> torch.Tensor:
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task = task
            context = self._state.begin()
            context.begin_backward(sys._getframe().f_back)
            self._state.unit.pre_backward()
        return grad
