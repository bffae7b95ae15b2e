# SPDX-License-Identifier: Apache-2.0
"""Name of the log of torch's checkpoints."""
from typing import Any

from torch.distributed.checkpoint import logging_handlers as _original
from torch.distributed.checkpoint.logging_handlers import *  # noqa: F403
from torch.distributed.checkpoint.logging_handlers import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
