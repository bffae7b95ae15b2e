# SPDX-License-Identifier: Apache-2.0
"""Keyword options of calls as the tuples that the extension module reads. Words and defaults are the same in every
language; an unknown option or word is INVALID_ARGUMENT and names what there is.
"""
from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import InvalidArgumentError

WORDS: dict[str, dict[str, int]] = {
    "overwrite": {"replace": 0, "refuse": 1},
    "durability": {"full": 0, "none": 1},
    "digests": {"on": 0, "off": 1},
    "owner": {"balanced": 0, "lowest_rank": 1, "exact": 2, "all": 3},
    "verify_replicas": {"auto": 0, "all": 1, "off": 2},
    "format": {"auto": 0, "native": 1, "torch_dcp": 2},
    "preset": {"standard": 0, "default": 1, "megatron": 2},
    "missing": {"error": 0, "report": 1},
    "unexpected": {"report": 0, "error": 1},
    "cast": {"error": 0, "allow": 1},
    "shape": {"error": 0, "crop_and_pad": 1},
    "verify": {"on_read": 0, "off": 1},
    "cover": {"full": 0, "disjoint": 1, "off": 2},
    "order": {"wanted": 0, "sweep": 1},
}
KINDS = {"auto": 0, "replicated": 1, "sharded": 2, "rank_local": 3}
KIND_NAMES = {number: word for word, number in KINDS.items()}
SAVE_OPTIONS = ("overwrite", "durability", "digests", "owner", "verify_replicas", "kind", "memory_budget", "threads",
                "deadline", "keep_generations", "file_mode", "metadata", "trace_path", "format", "preset")
LOAD_OPTIONS = ("verify", "missing", "unexpected", "cast", "shape", "strict", "memory_budget", "threads", "deadline",
                "trace_path", "format", "preset")
OPEN_OPTIONS = ("verify", "format", "memory_budget", "threads", "deadline")
_DEADLINE_MAX_SECONDS = 9.0e9


def _wrong(parameter: str, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, {"parameter": parameter})


def word(option: str, value: Any, words: Mapping[str, int] | None = None) -> int:
    """Number of an option's word."""
    known = WORDS[option] if words is None else words
    if isinstance(value, bool) and "on" in known:
        value = "on" if value else "off"
    if isinstance(value, str) and value in known:
        return known[value]
    raise _wrong(option, f"option {option} is {value!r}; it must be one of {', '.join(known)}")


def number(option: str, value: Any, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(option, f"option {option} is {value!r}; it must be an integer")
    if not 0 <= value <= maximum:
        raise _wrong(option, f"option {option} is {value}; it must be from 0 to {maximum}")
    return value


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


def _blob(texts: list[bytes]) -> tuple[bytes, bytes]:
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    return b"".join(texts), struct.pack(f"={len(ends)}Q", *ends)


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


def save_options(o: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tuple of shw_save_options."""
    check_names(o, SAVE_OPTIONS)
    kinds = pairs("kind", o.get("kind"), 2)
    globs, glob_offsets = _blob([_text("kind", glob) for glob, _ in kinds])
    values = struct.pack(f"={len(kinds)}i", *(word("kind", kind, KINDS) for _, kind in kinds))
    metadata = o.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise _wrong("metadata", "option metadata must be a mapping from text to text")
    texts, text_offsets = _blob([_text("metadata", t) for pair in metadata.items() for t in pair])
    return (word("overwrite", o.get("overwrite", "replace")), word("durability", o.get("durability", "full")),
            word("digests", o.get("digests", "on")), word("owner", o.get("owner", "balanced")),
            word("verify_replicas", o.get("verify_replicas", "auto")), word("format", o.get("format", "native")),
            word("preset", o.get("preset", "standard")), number("threads", o.get("threads", 0), 2**31 - 1),
            number("file_mode", o.get("file_mode", 0), 0o7777),
            number("keep_generations", o.get("keep_generations", 0), 2**31 - 1),
            number("memory_budget", o.get("memory_budget", 0), 2**63 - 1),
            nanoseconds("deadline", o.get("deadline")), _path("trace_path", o.get("trace_path")), globs, glob_offsets,
            values, len(kinds), texts, text_offsets, len(metadata))


def load_options(o: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tuple of shw_load_options."""
    check_names(o, LOAD_OPTIONS)
    rows = pairs("strict", o.get("strict"), 4, 5)
    shape = word("shape", o.get("shape", "error"))
    globs, offsets = _blob([_text("strict", row[0]) for row in rows])
    rules = [word(option, row[i]) for row in rows for i, option in ((1, "missing"), (2, "unexpected"), (3, "cast"))]
    shapes = [word("shape", row[4]) if len(row) == 5 else shape for row in rows]
    return (word("missing", o.get("missing", "error")), word("unexpected", o.get("unexpected", "report")),
            word("cast", o.get("cast", "error")), word("verify", o.get("verify", "on_read")),
            word("format", o.get("format", "auto")), word("preset", o.get("preset", "standard")), shape,
            number("threads", o.get("threads", 0), 2**31 - 1),
            number("memory_budget", o.get("memory_budget", 0), 2**63 - 1),
            nanoseconds("deadline", o.get("deadline")), _path("trace_path", o.get("trace_path")), globs, offsets,
            struct.pack(f"={len(rules)}i", *rules), struct.pack(f"={len(shapes)}i", *shapes), len(rows))


def open_options(o: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tuple of shw_checkpoint_options."""
    check_names(o, OPEN_OPTIONS)
    return (word("verify", o.get("verify", "on_read")), word("format", o.get("format", "auto")),
            number("threads", o.get("threads", 0), 2**31 - 1),
            number("memory_budget", o.get("memory_budget", 0), 2**63 - 1), nanoseconds("deadline", o.get("deadline")))
