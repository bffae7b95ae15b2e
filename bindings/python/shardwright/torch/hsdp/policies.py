# SPDX-License-Identifier: Apache-2.0
"""What fully_shard takes beside the module: dtypes and places of parameters."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from ...errors import InvalidArgumentError


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a unit; None = as the parameter is stored.

    Args:
        param_dtype: in which parameters are gathered and computed with.
        reduce_dtype: in which gradients travel and are summed. None is the stored dtype, not param_dtype.
        output_dtype: to which floating outputs of the module are cast.
        cast_forward_inputs: floating inputs are cast to param_dtype.
        apply_grad_on_fp32_main_grad: gradients are float32 and stand in `main_grad`; `grad` stays None.
        param_dtype_override_fn: called once with each parameter when it is sharded; None or param_dtype = param_dtype, the dtype
            that it has = as it is stored. Equal on all ranks. Inputs of forward are cast to param_dtype in any case.
    """

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    output_dtype: torch.dtype | None = None
    cast_forward_inputs: bool = True
    apply_grad_on_fp32_main_grad: bool = False
    param_dtype_override_fn: Callable[[torch.nn.Parameter], torch.dtype | None] | None = field(default=None, kw_only=True)

    def dtype_for(self, name: str, param: torch.nn.Parameter) -> torch.dtype | None:
        """param_dtype, or None where the parameter stays as it is stored. InvalidArgumentError naming it."""
        given = None if self.param_dtype_override_fn is None else self.param_dtype_override_fn(param)
        if given is not None and given not in (self.param_dtype, param.dtype):
            raise InvalidArgumentError(f"param_dtype_override_fn gives {given!r} for {name}; it must be None, param_dtype "
                                       f"({self.param_dtype}) or the dtype that the parameter has ({param.dtype})",
                                       {"parameter": name})
        return self.param_dtype if given in (None, self.param_dtype) else None


@dataclass(frozen=True)
class OffloadPolicy:
    """Shards lie where the mesh computes."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Shards and their gradients lie in memory of the host, where optimizers step them; where the mesh is of the CPU, that is where they
    are anyway. On GPUs that memory is pinned once the model has run forward, whatever `pin_memory` says."""

    pin_memory: bool = True
