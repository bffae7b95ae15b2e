# SPDX-License-Identifier: Apache-2.0
"""Lookups in a state dict, and the collectives of torch's own steps."""
from typing import Any

from torch.distributed.checkpoint import utils as _original
from torch.distributed.checkpoint.utils import *  # noqa: F403
from torch.distributed.checkpoint.utils import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
