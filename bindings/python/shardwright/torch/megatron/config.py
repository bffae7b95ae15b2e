# SPDX-License-Identifier: Apache-2.0
"""metadata.json: which backends wrote a checkpoint. It comes last, so its presence says that the checkpoint is whole."""
from __future__ import annotations

import dataclasses
import json
from typing import Any

from ._directory import Directory

MARKER = "metadata.json"


@dataclasses.dataclass
class CheckpointingConfig:
    """What metadata.json says: backend and version of tensors and objects, and of the file of the common state; None where the
    common state is among the objects."""

    sharded_backend: str
    sharded_backend_version: int = 1
    common_backend: str | None = "torch"
    common_backend_version: int | None = 1


def save_config(config: Any, checkpoint_dir: Any) -> None:
    """Writes metadata.json, in one step and durable. Takes megatron-core's own class, too."""
    said = {name: value for name, value in dataclasses.asdict(config).items() if value is not None}
    Directory(checkpoint_dir).replace(MARKER, json.dumps(said).encode())


def maybe_load_config(checkpoint_dir: Any) -> CheckpointingConfig | None:
    """What metadata.json says; None where it is missing or torn, which is no whole checkpoint. Fields of later releases are
    ignored."""
    return config_of(Directory(checkpoint_dir).read(MARKER)) if checkpoint_dir else None


def config_of(content: bytes | None) -> CheckpointingConfig | None:
    """The same of the bytes of the file."""
    try:
        found = json.loads(content or b"")
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("sharded_backend"), str):
        return None
    known = {field.name for field in dataclasses.fields(CheckpointingConfig)}
    return CheckpointingConfig(**{name: value for name, value in found.items() if name in known})


def check_is_distributed_checkpoint(checkpoint_dir: Any) -> bool:
    """Whether a whole checkpoint is there: metadata.json is, and can be read."""
    return maybe_load_config(checkpoint_dir) is not None
