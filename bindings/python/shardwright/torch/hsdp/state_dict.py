# SPDX-License-Identifier: Apache-2.0
"""State dicts of sharded modules, with the options of torch.distributed.checkpoint.state_dict."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint import state_dict as torch_state_dict
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.tensor import DTensor

from .._ragged import RaggedTensor
from ._context import all_contexts
from .module import reshard_all


def get_model_state_dict(model: nn.Module, *, options: StateDictOptions | None = None) -> dict[str, Any]:
    """Parameters and buffers by name: DTensors; with full_state_dict whole tensors, with cpu_offload too on rank 0 only, in host
    memory."""
    reshard_all(model)
    if options is None or not options.full_state_dict or not any(isinstance(each, RaggedTensor) for each in model.parameters()):
        found: dict[str, Any] = torch_state_dict.get_model_state_dict(model, options=options)
        return found
    parts = torch_state_dict.get_model_state_dict(model, options=dataclasses.replace(
        options, full_state_dict=False, cpu_offload=False, broadcast_from_rank0=False))
    # torch takes a tensor that is no DTensor of its own for a whole one.
    whole = {key: value.full_tensor() if isinstance(value, (DTensor, RaggedTensor)) else value for key, value in parts.items()}
    if not options.cpu_offload:
        return whole
    return {key: value.cpu() if isinstance(value, torch.Tensor) else value for key, value in whole.items()} if _is_first() else {}


def _is_first() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def set_model_state_dict(model: nn.Module, model_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Fills the model; what get_model_state_dict gives with the same options. With broadcast_from_rank0 only rank 0 has values."""
    reshard_all(model)
    return torch_state_dict.set_model_state_dict(model, dict(model_state_dict), options=options)


def hsdp_sync_stream() -> None:
    """Waits for all reductions that are under way in this process: those of backwards that were not the last of their
    iteration (set_is_last_backward)."""
    for context in all_contexts():
        if context.has_reductions():
            context.wait_for_reductions()
