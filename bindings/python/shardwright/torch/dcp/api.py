# SPDX-License-Identifier: Apache-2.0
"""The exception of torch's checkpoints. What `save` and `load` raise here is that, an Exception and a ShardwrightError."""
from typing import Any

from torch.distributed.checkpoint import api as _original
from torch.distributed.checkpoint.api import *  # noqa: F403
from torch.distributed.checkpoint.api import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
