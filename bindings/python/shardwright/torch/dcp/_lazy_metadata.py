# SPDX-License-Identifier: Apache-2.0
"""What `save` returns: torch's Metadata, filled from the checkpoint when somebody first looks at it. Nothing of it travels
between ranks."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.distributed.checkpoint.metadata import Metadata


class LazyMetadata(Metadata):
    """A Metadata that nobody has looked at; becomes an ordinary one by the first look. `fill`: makes it; what it raises
    comes out of that look."""

    def __init__(self, fill: Callable[[], Metadata]) -> None:
        object.__setattr__(self, "_fill", fill)

    def __getattribute__(self, name: str) -> Any:
        if name not in ("__class__", "__reduce_ex__", "__doc__", "__module__"):
            _become(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _become(self)
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return bool(_become(self) == other)

    __hash__ = None  # type: ignore[assignment]  # as of torch's

    def __repr__(self) -> str:
        return repr(_become(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _become(self).__reduce_ex__(protocol)


def filler_of(lazy: LazyMetadata) -> Callable[[], Metadata]:
    """What will fill a metadata that nobody has looked at."""
    fill: Callable[[], Metadata] = object.__getattribute__(lazy, "__dict__")["_fill"]
    return fill


def _become(lazy: Any) -> Metadata:
    values = object.__getattribute__(lazy, "__dict__")
    fill = values.get("_fill")
    if fill is not None:
        made = vars(fill())
        values.pop("_fill", None)
        values.update(made)
        object.__setattr__(lazy, "__class__", Metadata)
    found: Metadata = lazy
    return found
