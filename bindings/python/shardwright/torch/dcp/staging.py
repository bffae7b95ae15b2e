# SPDX-License-Identifier: Apache-2.0
"""Stagers, which copy a state before a background save reads it: torch's own classes."""
from typing import Any

from torch.distributed.checkpoint import staging as _original
from torch.distributed.checkpoint.staging import *  # noqa: F403
from torch.distributed.checkpoint.staging import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
