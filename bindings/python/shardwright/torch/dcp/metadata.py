# SPDX-License-Identifier: Apache-2.0
"""Metadata of checkpoints: torch's own classes, so that what one side makes the other takes."""
from typing import Any

from torch.distributed.checkpoint import metadata as _original
from torch.distributed.checkpoint.metadata import *  # noqa: F403
from torch.distributed.checkpoint.metadata import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
