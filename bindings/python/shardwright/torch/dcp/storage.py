# SPDX-License-Identifier: Apache-2.0
"""What storage writers and readers offer: torch's own base classes."""
from typing import Any

from torch.distributed.checkpoint import storage as _original
from torch.distributed.checkpoint.storage import *  # noqa: F403
from torch.distributed.checkpoint.storage import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
