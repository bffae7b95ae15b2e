# SPDX-License-Identifier: Apache-2.0
"""The training side of the demo: a model under FSDP2, its optimizer, and one step."""
import hashlib

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import model as models
from corpus import Batches

SEQUENCES = 12  # divides by 3 and by 4: both meshes train on the same batch


class Trainer:
    """One rank. mesh_shape (2, 2) replicates over the first axis and shards over the second; (n,) shards over n."""

    def __init__(self, mesh_shape, text):
        config = models.Config()
        names = ("replicate", "shard")[-len(mesh_shape):]
        self.mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=names)
        torch.manual_seed(0)
        self.model = models.Transformer(config)
        # The positions stay out of FSDP: plain tensors that this script keeps equal on all ranks.
        self.left_out = [self.model.positions]
        for block in self.model.blocks:
            fully_shard(block, mesh=self.mesh)
        fully_shard(self.model, mesh=self.mesh, ignored_params=set(self.left_out))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, weight_decay=0.01)
        self.batches = Batches(text, SEQUENCES, config.context)
        self.step_number = 0

    def step(self):
        """One optimizer step on the whole batch; the mean loss over all ranks."""
        tokens = self.batches.at(self.step_number, dist.get_rank(), dist.get_world_size())
        loss = models.loss_of(self.model, tokens)
        loss.backward()
        for parameter in self.left_out:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step_number += 1
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return float(mean) / dist.get_world_size()

    def check_left_out_equal(self):
        """Raises when a parameter that FSDP does not manage differs between ranks."""
        for parameter in self.left_out:
            first = parameter.detach().clone()
            dist.broadcast(first, src=0)
            if not torch.equal(first, parameter.detach()):
                raise RuntimeError("a parameter outside FSDP differs between ranks")

    def state(self):
        """Model, optimizer and step as one nested dict of DTensors, tensors and numbers."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step_number}

    def take(self, state):
        """Puts a loaded state back."""
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])
        self.step_number = int(state["step"])


def tensors_of(tree, prefix=""):
    """Dotted name -> tensor of every tensor in a nested dict or list."""
    if isinstance(tree, torch.Tensor):
        return {prefix: tree}
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, (list, tuple)) else ()
    found = {}
    for key, value in items:
        found |= tensors_of(value, f"{prefix}.{key}" if prefix else str(key))
    return found


def shard_shapes(state):
    """Name -> (global shape, shape on this rank) of the sharded tensors."""
    return {n: (list(t.shape), list(t.to_local().shape)) for n, t in tensors_of(state).items() if isinstance(t, DTensor)}


def digests_in_memory(state):
    """Name -> dtype, shape and SHA-256 of the whole tensor's bytes, by hashlib. Collective: every rank calls it."""
    found = {}
    for name, tensor in sorted(tensors_of(state).items()):
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        data = whole.detach().contiguous().view(torch.uint8) if whole.dim() else whole.detach().reshape(1).view(torch.uint8)
        found[name] = {"dtype": str(whole.dtype).removeprefix("torch."), "shape": list(whole.shape),
                       "digest": hashlib.sha256(data.numpy()).hexdigest()}
    return found
