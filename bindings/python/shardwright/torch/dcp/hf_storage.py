# SPDX-License-Identifier: Apache-2.0
"""Hugging Face directories as storage of DCP. Reading them is `load(state, checkpoint_id=path)`, which takes them as they are;
writing them in DCP's sharded form is not part of this version."""
from typing import Any

from torch.distributed.checkpoint import hf_storage as _original

from ...errors import UnimplementedError

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


def refusal(name: str, instead: str) -> UnimplementedError:
    """What a class raises that belongs to a format of later versions."""
    return UnimplementedError(f"{name} is not part of this version; {instead}, or pass torch's own "
                              f"torch.distributed.checkpoint.{name} to save or load", {"parameter": name})


class HuggingFaceStorageWriter(_original.HuggingFaceStorageWriter):
    """Refused: UnimplementedError says what there is instead."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise refusal("HuggingFaceStorageWriter", 'use shardwright.torch.save(state, path, format="safetensors")')


class HuggingFaceStorageReader(_original.HuggingFaceStorageReader):
    """Refused: UnimplementedError says what there is instead."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise refusal("HuggingFaceStorageReader", "use load(state, checkpoint_id=path), which reads these directories")


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
