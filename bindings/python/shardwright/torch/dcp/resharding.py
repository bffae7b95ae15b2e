# SPDX-License-Identifier: Apache-2.0
"""Overlaps of shards: torch's own."""
from typing import Any

from torch.distributed.checkpoint import resharding as _original
from torch.distributed.checkpoint.resharding import *  # noqa: F403
from torch.distributed.checkpoint.resharding import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
