# SPDX-License-Identifier: Apache-2.0
"""Quantised Hugging Face directories as storage of DCP: not part of this version."""
from typing import Any

from torch.distributed.checkpoint import quantized_hf_storage as _original

from .hf_storage import refusal

__all__ = ["QuantizedHuggingFaceStorageReader"]


class QuantizedHuggingFaceStorageReader(_original.QuantizedHuggingFaceStorageReader):
    """Refused: UnimplementedError says what there is instead."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise refusal("QuantizedHuggingFaceStorageReader", "load the quantised tensors and their scales by their own names")


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
