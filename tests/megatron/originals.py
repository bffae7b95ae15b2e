# SPDX-License-Identifier: Apache-2.0
"""megatron-core as it is installed, able to run without a GPU: two functions of torch.cuda are replaced. Its writers are
threads here: it forks them, and the fork of a process with threads hangs by chance on a lock that one of them held."""
import importlib.util
import sys
import warnings
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "megatron_gpt"))
from cpu_megatron import WithoutFork  # noqa: E402: the example's


def is_installed():
    """True when megatron-core is importable; it is large, so it is not imported for the answer."""
    try:
        return importlib.util.find_spec("megatron.core") is not None
    except ModuleNotFoundError:
        return False


def modules():
    """The modules of dist_checkpointing that the tests compare with, by their last name."""
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from megatron.core.dist_checkpointing import dict_utils, exchange_utils, mapping, serialization, validation
        from megatron.core.dist_checkpointing.strategies import async_utils, filesystem_async, fully_parallel, torch as strategies
    for module in (async_utils, filesystem_async):
        if not isinstance(module.mp, WithoutFork):
            module.mp = WithoutFork(module.mp)
    return {"dict_utils": dict_utils, "exchange_utils": exchange_utils, "mapping": mapping, "serialization": serialization,
            "validation": validation, "fully_parallel": fully_parallel, "strategies": strategies}
