# SPDX-License-Identifier: Apache-2.0
"""What a tensor says that holds parts of a larger one: torch's own protocol."""
from typing import Any

from torch.distributed.checkpoint import protocol as _original
from torch.distributed.checkpoint.protocol import *  # noqa: F403
from torch.distributed.checkpoint.protocol import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
