# SPDX-License-Identifier: Apache-2.0
"""The Stateful protocol, torch's own."""
from typing import Any

from torch.distributed.checkpoint import stateful as _original
from torch.distributed.checkpoint.stateful import *  # noqa: F403
from torch.distributed.checkpoint.stateful import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
