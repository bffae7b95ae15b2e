# SPDX-License-Identifier: Apache-2.0
"""Classes that Megatron's own loads accept in objects beside those that every load of ours takes."""
from __future__ import annotations

import signal
import sys
from typing import Any

_MEGATRON_CLASSES = {
    "megatron.core.transformer.enums": ("AttnBackend", "CudaGraphScope"),
    "megatron.core.enums": ("ModelType",),
    "megatron.core.optimizer.optimizer_config": ("OptimizerConfig",),
    "megatron.core.rerun_state_machine": ("RerunDiagnostic", "RerunMode", "RerunState"),
}


def allowed_types() -> list[Any]:
    """Those that are imported: nothing is imported for a load."""
    found: list[Any] = [signal.Signals]
    for module, names in _MEGATRON_CLASSES.items():
        found += [getattr(sys.modules[module], name) for name in names if hasattr(sys.modules.get(module), name)]
    return found
