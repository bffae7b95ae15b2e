# SPDX-License-Identifier: Apache-2.0
"""What fully_shard takes beside the module: dtypes and places of parameters."""
from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a unit; None = as the parameter is stored.

    Args:
        param_dtype: in which parameters are gathered and computed with.
        reduce_dtype: in which gradients travel and are summed. None is the stored dtype, not param_dtype.
        output_dtype: to which floating outputs of the module are cast.
        cast_forward_inputs: floating inputs are cast to param_dtype.
        apply_grad_on_fp32_main_grad: gradients are float32 and stand in `main_grad`; `grad` stays None.
    """

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    output_dtype: torch.dtype | None = None
    cast_forward_inputs: bool = True
    apply_grad_on_fp32_main_grad: bool = False


@dataclass(frozen=True)
class OffloadPolicy:
    """Shards stay where the mesh computes."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Shards stay in host memory; where the mesh is of the host, that is where they are."""

    pin_memory: bool = True
