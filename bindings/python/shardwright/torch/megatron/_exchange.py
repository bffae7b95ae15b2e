# SPDX-License-Identifier: Apache-2.0
"""How many ranks a group has, and which of them this is."""
from __future__ import annotations

import torch.distributed as dist


def group_size(group: dist.ProcessGroup | None) -> int:
    """Number of ranks; 1 without process groups."""
    return dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1


def group_rank(group: dist.ProcessGroup | None) -> int:
    """Rank in the group; 0 without process groups."""
    return dist.get_rank(group) if dist.is_available() and dist.is_initialized() else 0
