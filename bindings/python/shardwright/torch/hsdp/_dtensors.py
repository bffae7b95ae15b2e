# SPDX-License-Identifier: Apache-2.0
"""DTensors over memory that stays where it lies."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta


def dtensor_of(local: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Any], shape: Sequence[int],
               stride: Sequence[int]) -> DTensor:
    """The tensor of that global shape of which `local` is this rank's part. DTensor.from_local moves what is not on the kind of
    device that the mesh has; shards that are offloaded lie with the host on a mesh of GPUs."""
    spec = DTensorSpec(mesh, tuple(placements), tensor_meta=TensorMeta(torch.Size(shape), tuple(stride), local.dtype))
    made: DTensor = DTensor(local, spec, requires_grad=False)
    return made
