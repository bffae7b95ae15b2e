# SPDX-License-Identifier: Apache-2.0
"""Keyword options of calls: their types, and the fields of the structs that they become. Words and defaults are the same in
every language; an unknown option or word is INVALID_ARGUMENT and names what there is.

Words stand in the order of their numbers: the first is what a zeroed struct means.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, get_args

from .errors import InvalidArgumentError

Overwrite = Literal["replace", "refuse"]
Durability = Literal["full", "none"]
Digests = Literal["on", "off"]
Hold = Literal["off", "on"]
Priority = Literal["normal", "background"]
Owner = Literal["balanced", "lowest_rank", "exact", "all"]
VerifyReplicas = Literal["auto", "all", "off"]
Format = Literal["auto", "native", "torch_dcp", "safetensors", "megatron"]
Common = Literal["file", "object"]
Integrity = Literal["off", "sha256"]
OptimizerLayout = Literal["fully_reshardable", "dp_reshardable"]
Preset = Literal["native", "hyperparallel", "torch", "megatron"]
Missing = Literal["error", "report"]
Unexpected = Literal["report", "error"]
Cast = Literal["error", "allow"]
Shape = Literal["error", "crop_and_pad"]
Verify = Literal["on_read", "off"]
ReadPath = Literal["auto", "direct", "buffered"]
Exchange = Literal["auto", "off", "always"]
NodeExchange = Literal["off", "always"]
Cover = Literal["full", "disjoint", "off"]
Order = Literal["wanted", "sweep"]
Kind = Literal["auto", "replicated", "sharded", "rank_local"]
KindRules = Mapping[str, Kind] | Sequence[tuple[str, Kind]]
StrictRule = tuple[Missing, Unexpected, Cast] | tuple[Missing, Unexpected, Cast, Shape]
StrictRules = (Mapping[str, StrictRule] | Sequence[tuple[str, Missing, Unexpected, Cast]]
               | Sequence[tuple[str, Missing, Unexpected, Cast, Shape]])


class SaveOptions(TypedDict, total=False):
    """Options of a save; docs/save-and-load.md says what they do."""

    overwrite: Overwrite
    durability: Durability
    digests: Digests | bool
    owner: Owner
    verify_replicas: VerifyReplicas
    kind: KindRules | None
    memory_budget: int
    threads: int
    deadline: float | None
    keep_generations: int
    file_mode: int
    metadata: Mapping[str, str] | None
    trace_path: str | bytes | os.PathLike[str] | None
    format: Format
    preset: Preset
    max_shard_size: int
    hold: Hold | bool
    priority: Priority
    common: Common
    integrity: Integrity


class ConvertOptions(TypedDict, total=False):
    """Options of a conversion; docs/save-and-load.md says what they do."""

    common: Common
    integrity: Integrity
    format: Format
    overwrite: Overwrite
    durability: Durability
    threads: int
    file_mode: int
    memory_budget: int
    max_shard_size: int
    deadline: float | None
    compare: bool


class ReshardOptions(TypedDict, total=False):
    """Options of a reshard; docs/megatron.md says what they do."""

    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    expert_tensor_parallel: int
    data_parallel: int
    pipeline_layers: Sequence[int]
    optimizer: OptimizerLayout
    job: Mapping[str, Any] | str | None
    map: Mapping[str, Any] | str | None
    dry_run: bool
    overwrite: Overwrite
    durability: Durability
    threads: int
    file_mode: int
    memory_budget: int
    deadline: float | None
    compare: bool


class LoadOptions(TypedDict, total=False):
    """Options of a load; docs/save-and-load.md says what they do."""

    verify: Verify
    read_path: ReadPath
    exchange: Exchange
    missing: Missing
    unexpected: Unexpected
    cast: Cast
    shape: Shape
    strict: StrictRules | None
    memory_budget: int
    threads: int
    deadline: float | None
    trace_path: str | bytes | os.PathLike[str] | None
    format: Format
    preset: Preset


class OpenOptions(TypedDict, total=False):
    """Options of opening a checkpoint; they hold for all its reads."""

    verify: Verify
    read_path: ReadPath
    format: Format
    memory_budget: int
    threads: int
    deadline: float | None


def _numbered(words: Any) -> dict[str, int]:
    return {each: number for number, each in enumerate(get_args(words))}


WORDS: dict[str, dict[str, int]] = {
    "optimizer": _numbered(OptimizerLayout),
    "overwrite": _numbered(Overwrite),
    "durability": _numbered(Durability),
    "digests": _numbered(Digests),
    "hold": _numbered(Hold),
    "priority": _numbered(Priority),
    "common": _numbered(Common),
    "integrity": _numbered(Integrity),
    "owner": _numbered(Owner),
    "verify_replicas": _numbered(VerifyReplicas),
    "format": _numbered(Format),
    "preset": _numbered(Preset),
    "missing": _numbered(Missing),
    "unexpected": _numbered(Unexpected),
    "cast": _numbered(Cast),
    "shape": _numbered(Shape),
    "verify": _numbered(Verify),
    "read_path": _numbered(ReadPath),
    "exchange": _numbered(Exchange),
    "node_exchange": _numbered(NodeExchange),
    "cover": _numbered(Cover),
    "order": _numbered(Order),
}
KINDS = _numbered(Kind)
KIND_NAMES = {number: word for word, number in KINDS.items()}
_DEADLINE_MAX_SECONDS = 9.0e9


def _wrong(parameter: str, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, {"parameter": parameter})


def word(option: str, value: Any, words: Mapping[str, int] | None = None) -> int:
    """Number of an option's word."""
    known = WORDS[option] if words is None else words
    if isinstance(value, bool) and "on" in known:
        value = "on" if value else "off"
    if isinstance(value, str) and value.replace("-", "_") in known:
        return known[value.replace("-", "_")]
    raise _wrong(option, f"option {option} is {value!r}; it must be one of {', '.join(known)}")


def number(option: str, value: Any, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(option, f"option {option} is {value!r}; it must be an integer")
    if not 0 <= value <= maximum:
        raise _wrong(option, f"option {option} is {value}; it must be from 0 to {maximum}")
    return value


def _numbers(option: str, values: Any, maximum: int) -> list[int]:
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        raise _wrong(option, f"option {option} is {values!r}; it must be a list of integers")
    return [number(option, value, maximum) for value in values]


def nanoseconds(option: str, seconds: float | None) -> int:
    """A span in seconds; None = the default, negative = no limit."""
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds != seconds:
        raise _wrong(option, f"option {option} is {seconds!r}; it must be a number of seconds")
    if seconds < 0 or seconds > _DEADLINE_MAX_SECONDS:
        return -1
    return max(1, int(seconds * 1e9))


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise _wrong(name, f"there is no option {name!r}; options of this call are {', '.join(sorted(known))}")


def _text(option: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong(option, f"option {option} holds {value!r}, which is not text")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as e:
        raise _wrong(option, f"option {option} holds text that cannot be written as UTF-8: {e}") from e


def pairs(option: str, value: Any, length: int, longest: int = 0) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, Mapping) else value or ()
    rows = [(row[0], *row[1]) if len(row) == 2 and isinstance(row[1], (tuple, list)) else tuple(row) for row in items]
    for row in rows:
        if not length <= len(row) <= max(length, longest):
            counts = f"{length} to {longest}" if longest else str(length)
            raise _wrong(option, f"option {option} needs rows of {counts} values, found {row!r}")
    return rows


def _path(option: str, value: Any) -> bytes | None:
    return None if value is None else os.fsencode(value)


def _fields(words: Mapping[str, str], o: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that hold the words of options, those with their defaults, and those that all calls have."""
    fields: dict[str, Any] = {option: word(option, o.get(option, default)) for option, default in words.items()}
    fields["threads"] = number("threads", o.get("threads", 0), 2**31 - 1)
    fields["memory_budget"] = number("memory_budget", o.get("memory_budget", 0), 2**63 - 1)
    fields["deadline_ns"] = nanoseconds("deadline", o.get("deadline"))
    return fields


_SAVE_WORDS = {"overwrite": "replace", "durability": "full", "digests": "on", "owner": "balanced", "verify_replicas": "auto",
               "format": "native", "preset": "native", "hold": "off", "priority": "normal",
               "common": "file", "integrity": "off"}
_CONVERT_WORDS = {"format": "native", "overwrite": "refuse", "durability": "full", "common": "file", "integrity": "off"}
_RESHARD_WORDS = {"optimizer": "fully_reshardable", "overwrite": "refuse", "durability": "full"}
_LOAD_WORDS = {"missing": "error", "unexpected": "report", "cast": "error", "verify": "on_read", "read_path": "auto",
               "exchange": "auto", "format": "auto", "preset": "native", "shape": "error"}
_OPEN_WORDS = {"verify": "on_read", "read_path": "auto", "format": "auto"}


def kind_fields(rules: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Fields of globs and the numbers of their kinds."""
    given = list(rules)
    return {"kind_globs": [_text("kind", glob) for glob, _ in given], "kind_values": [kind for _, kind in given],
            "kind_count": len(given)}


def save_options(o: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of shw_save_options."""
    check_names(o, SaveOptions.__annotations__)
    kinds = [(glob, word("kind", kind, KINDS)) for glob, kind in pairs("kind", o.get("kind"), 2)]
    metadata = o.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise _wrong("metadata", "option metadata must be a mapping from text to text")
    return _fields(_SAVE_WORDS, o) | kind_fields(kinds) | {
        "file_mode": number("file_mode", o.get("file_mode", 0), 0o7777),
        "keep_generations": number("keep_generations", o.get("keep_generations", 0), 2**31 - 1),
        "max_shard_size": number("max_shard_size", o.get("max_shard_size", 0), 2**63 - 1),
        "trace_path": _path("trace_path", o.get("trace_path")),
        "metadata": [_text("metadata", text) for pair in metadata.items() for text in pair],
        "metadata_count": len(metadata)}


def convert_options(o: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of shw_convert_options."""
    check_names(o, ConvertOptions.__annotations__)
    return _fields(_CONVERT_WORDS, o) | {
        "flags": 0 if o.get("compare", True) else 1,
        "file_mode": number("file_mode", o.get("file_mode", 0), 0o7777),
        "max_shard_size": number("max_shard_size", o.get("max_shard_size", 0), 2**63 - 1)}


def _json(option: str, value: Any) -> bytes | None:
    """Text, or what json makes one of."""
    if value is None or isinstance(value, str):
        return None if value is None else _text(option, value)
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError) as e:
        raise _wrong(option, f"option {option} cannot be said as JSON: {e}") from e


def reshard_options(o: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of shw_reshard_options."""
    check_names(o, ReshardOptions.__annotations__)
    sizes = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "expert_tensor_parallel", "data_parallel")
    layers = _numbers("pipeline_layers", o.get("pipeline_layers", ()), 2**31 - 1)
    return _fields(_RESHARD_WORDS, o) | {size: number(size, o.get(size, 0), 2**31 - 1) for size in sizes} | {
        "flags": (0 if o.get("compare", True) else 1) | (2 if o.get("dry_run", False) else 0),
        "file_mode": number("file_mode", o.get("file_mode", 0), 0o7777),
        "pipeline_layers": layers, "pipeline_layer_count": len(layers),
        "job": _json("job", o.get("job")), "map": _json("map", o.get("map"))}


def load_options(o: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of shw_load_options."""
    check_names(o, LoadOptions.__annotations__)
    rows = pairs("strict", o.get("strict"), 4, 5)
    fields = _fields(_LOAD_WORDS, o)
    rules = [word(option, row[i]) for row in rows for i, option in ((1, "missing"), (2, "unexpected"), (3, "cast"))]
    shapes = [word("shape", row[4]) if len(row) == 5 else fields["shape"] for row in rows]
    return fields | {
        "trace_path": _path("trace_path", o.get("trace_path")), "strict_globs": [_text("strict", row[0]) for row in rows],
        "strict_rules": rules, "strict_shapes": shapes, "strict_count": len(rows)}


def open_options(o: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of shw_checkpoint_options."""
    check_names(o, OpenOptions.__annotations__)
    return _fields(_OPEN_WORDS, o)
