# SPDX-License-Identifier: Apache-2.0
"""Layout files: JSON that says, per rank and parameter, how tensors are laid out.

    {"<rank>": {"<parameter>": {mesh_shape, tensor_map, interleaved_parallel, alias_name, rank_list, type, full_shape}}}

`type` is the printed dtype, `full_shape` the global shape; tuples become lists. Files end in ".layout" by convention.
Equal rank lists and equal meshes are one object in memory after a load.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataLossError, InvalidArgumentError
from .layouts import missing_attribute

LayoutFile = dict[str, dict[str, dict[str, Any]]]
SUFFIX = ".layout"
_SHARED = ("mesh_shape", "tensor_map", "alias_name", "rank_list")


def check_path(path: Path | str) -> None:
    """Makes the folder that a path needs: nothing when it exists, the parent of a path with a suffix, else the path
    itself."""
    place = Path(path)
    if not place.exists():
        (place.parent if place.suffix else place).mkdir(parents=True, exist_ok=True)


def has_valid_filename(path: Path | str) -> bool:
    """True for names with a stem and a suffix that hold at least one letter each, such as "a.b"."""
    place = Path(path)
    return any(c.isalpha() for c in place.stem) and any(c.isalpha() for c in place.suffix[1:])


def layouts_of(parameters: Iterable[tuple[str, Any]], rank: int) -> LayoutFile:
    """The layouts of named parameters of one rank; those without a layout are left out.

    Args:
        parameters: (name, value); a value's `layout` must have mesh_shape, tensor_map and rank_list, and may have
            to_dict().
    Raises InvalidArgumentError when a name occurs twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, parameter in parameters:
        layout = getattr(parameter, "layout", None)
        if layout is None or missing_attribute(layout) is not None:
            continue
        if name in found:
            raise InvalidArgumentError(f"two parameters have the name {name!r}", {"tensor": name})
        described = dict(layout.to_dict()) if hasattr(layout, "to_dict") else _described(layout)
        found[name] = described | {"type": str(parameter.dtype), "full_shape": tuple(int(n) for n in parameter.shape)}
    return {str(rank): found}


def _described(layout: Any) -> dict[str, Any]:
    def value(name: str) -> Any:
        public = getattr(layout, name, None)
        return getattr(layout, "_" + name, None) if public is None else public

    return {"mesh_shape": tuple(value("mesh_shape")), "tensor_map": tuple(value("tensor_map")),
            "interleaved_parallel": bool(value("interleaved_parallel")), "alias_name": tuple(value("alias_name") or ()),
            "rank_list": tuple(value("rank_list"))}


def get_current_layout(cell: Any, rank: int = 0) -> LayoutFile:
    """Layouts of this rank's parameters.

    Args:
        cell: something with named_parameters() or parameters_and_names(), or a mapping from names to values.
        rank: this rank; adapters of a framework know it.
    Raises InvalidArgumentError.
    """
    return layouts_of(named_parameters(cell), rank)


def named_parameters(cell: Any) -> Iterable[tuple[str, Any]]:
    """(name, parameter) of a model or a mapping. InvalidArgumentError for anything else."""
    if isinstance(cell, Mapping):
        return cell.items()
    for method in ("named_parameters", "parameters_and_names"):
        if hasattr(cell, method):
            found: Iterable[tuple[str, Any]] = getattr(cell, method)()
            return found
    raise InvalidArgumentError(f"a {type(cell).__qualname__} has no named parameters", {"parameter": "cell"})


def save_layout(layout_dict: Mapping[str, Any], file_path: Path | str) -> None:
    """Writes layouts as JSON; the folder must exist."""
    text = json.dumps(layout_dict, ensure_ascii=False)
    Path(file_path).write_text(text, encoding="utf-8")


def load_layout(file_path: Path | str) -> LayoutFile:
    """Reads layouts. DataLossError for a file that is no layout JSON, FileNotFoundError."""
    try:
        loaded = json.loads(Path(file_path).read_text(encoding="utf-8"))
    except ValueError as e:
        raise DataLossError(f"{file_path} is no layout file: {e}", {"path": str(file_path)}) from e
    if not isinstance(loaded, dict) or not all(isinstance(entry, dict) for entry in loaded.values()):
        raise DataLossError(f"{file_path} is no layout file: it is not a JSON object of ranks",
                            {"path": str(file_path)})
    return _interned(loaded)


def _interned(layouts: LayoutFile) -> LayoutFile:
    """Equal rank lists, meshes and maps become one object: they repeat for each parameter of each rank."""
    known: dict[str, Any] = {}
    for parameters in layouts.values():
        for described in parameters.values():
            for key in _SHARED:
                if isinstance(described.get(key), list):
                    described[key] = known.setdefault(json.dumps(described[key]), described[key])
    return layouts


def combine_layout(directory: Path | str) -> LayoutFile:
    """Layouts of all files of a folder that end in ".layout", by rank.

    Raises InvalidArgumentError (a ValueError) for a rank that two files hold.
    """
    combined: LayoutFile = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(SUFFIX):
            merge_ranks(combined, load_layout(Path(directory) / name), name)
    return combined


def merge_ranks(combined: LayoutFile, added: LayoutFile, where: str) -> None:
    """Adds the ranks of one part. InvalidArgumentError for a rank that is there already."""
    twice = sorted(set(combined) & set(added))
    if twice:
        raise InvalidArgumentError(f"rank {twice[0]} of {where} is in another part too", {"rank": twice[0]})
    combined.update(added)


def get_global_layout(cell: Any, rank: int = 0,
                      all_gather: Callable[[LayoutFile], Sequence[LayoutFile]] | None = None) -> LayoutFile:
    """Layouts of all ranks, by rank.

    Args:
        cell, rank: as for get_current_layout.
        all_gather: gives the layouts of all ranks for those of this one; None = there is one rank.
    Raises InvalidArgumentError (a ValueError) for a rank that two of them name.
    """
    mine = get_current_layout(cell, rank)
    combined: LayoutFile = {}
    for index, part in enumerate([mine] if all_gather is None else all_gather(mine)):
        merge_ranks(combined, part, f"participant {index}")
    return combined
