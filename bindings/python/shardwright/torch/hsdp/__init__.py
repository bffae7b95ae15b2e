# SPDX-License-Identifier: Apache-2.0
"""Hybrid sharded data parallel training of torch modules, with the interface of torch's fully_shard.

    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)

Parameters become DTensors, so that torch's optimizers, clip_grad_norm_ and checkpoints work on them; gradients are summed in
rank order, so that a run has the bits of one process that adds in the same order (docs/hsdp.md).
"""
from .._ragged import RaggedTensor
from .api import fully_shard, register_fsdp_forward_method, share_comm_ctx
from .module import HSDPModule, UnshardHandle
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .state_dict import get_model_state_dict, hsdp_sync_stream, set_model_state_dict

__all__ = ["CPUOffloadPolicy", "HSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "RaggedTensor", "UnshardHandle",
           "fully_shard", "get_model_state_dict", "hsdp_sync_stream", "register_fsdp_forward_method", "set_model_state_dict",
           "share_comm_ctx"]
