# SPDX-License-Identifier: Apache-2.0
"""State dicts of models and optimizers whose names do not depend on the parallelism: torch's own functions."""
from typing import Any

from torch.distributed.checkpoint import state_dict as _original
from torch.distributed.checkpoint.state_dict import *  # noqa: F403
from torch.distributed.checkpoint.state_dict import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
