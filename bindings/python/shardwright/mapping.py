# SPDX-License-Identifier: Apache-2.0
"""Mappings: rules that say under which names, in which shapes and in which boxes entries are stored."""
from __future__ import annotations

from typing import Any

from ._library import native


class Mapping:
    """Rules for `State(..., mapping=...)`; docs/formats/mapping.md describes their JSON. Immutable, any thread.

    Args:
        json: the rules.
        parameters: values of "$name" in it.
    Raises InvalidArgumentError naming line, rule and member of what is wrong, and parameters that are missing or not known.
    """

    def __init__(self, json: str, **parameters: int) -> None:
        self._handle = _made({"json": json.encode()}, parameters)

    @classmethod
    def shipped(cls, name: str, **parameters: int) -> Mapping:
        """A mapping that the library brings: "swiglu", "gpt", "gpt_swiglu", "moe", "mamba"; NotFoundError for others."""
        made = cls.__new__(cls)
        made._handle = _made({"shipped": name.encode()}, parameters)
        return made


def _made(spec: dict[str, Any], parameters: dict[str, int]) -> Any:
    if parameters:
        spec = {**spec, "parameter_names": [name.encode() for name in parameters],
                "parameter_values": list(parameters.values()), "parameter_count": len(parameters)}
    return native.shw_mapping_create(spec)
