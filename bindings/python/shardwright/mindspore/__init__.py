# SPDX-License-Identifier: Apache-2.0
"""MindSpore: planners over MindSpore tensors. Needs MindSpore 2.10 or newer; `import shardwright` alone does not."""
try:
    import mindspore as _mindspore  # noqa: F401
except ImportError as e:
    raise ImportError(
        "shardwright.mindspore needs MindSpore, which is not installed here: pip install 'mindspore>=2.10'") from e

__all__ = ["hyperparallel"]

from . import hyperparallel
