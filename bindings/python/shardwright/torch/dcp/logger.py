# SPDX-License-Identifier: Apache-2.0
"""The log of torch's checkpoints."""
from typing import Any

from torch.distributed.checkpoint import logger as _original
from torch.distributed.checkpoint.logger import *  # noqa: F403
from torch.distributed.checkpoint.logger import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
