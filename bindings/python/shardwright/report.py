# SPDX-License-Identifier: Apache-2.0
"""Report: what a save, load, verification or clean-up did."""
from __future__ import annotations

import json
from typing import Any, NamedTuple

from . import _html
from ._library import native


class Cast(NamedTuple):
    """A tensor that was filled with another dtype than the stored one."""

    name: str
    stored: str
    wanted: str


class ShapeChange(NamedTuple):
    """A tensor that was cropped, or padded with zeros, because it is stored with another global shape."""

    name: str
    stored: tuple[int, ...]
    wanted: tuple[int, ...]


class Report:
    """What one finished call did; immutable.

    Numbers are those of this rank unless they say total. `to_dict()` gives everything, also what a newer library adds.
    """

    def __init__(self, handle: Any) -> None:
        self._json: str = native.shw_report_json(handle)
        self._fields: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain values, with "schema": 1."""
        if self._fields is None:
            self._fields = json.loads(self._json)
        return dict(self._fields)

    def _get(self, key: str, default: Any = None) -> Any:
        if self._fields is None:
            self._fields = json.loads(self._json)
        return self._fields.get(key, default)

    @property
    def operation(self) -> str:
        """"save", "load", "verify", "gc", "remove"..."""
        return str(self._get("operation", ""))

    @property
    def format(self) -> str:
        """Format of the checkpoint."""
        return str(self._get("format", ""))

    @property
    def path(self) -> str:
        """Path or key prefix of the checkpoint."""
        return str(self._get("path", ""))

    @property
    def generation(self) -> str:
        """Generation that was written or read."""
        return str(self._get("generation", ""))

    @property
    def durability(self) -> str:
        """"full", "none" or "memory"."""
        return str(self._get("durability", ""))

    @property
    def digests(self) -> bool:
        """False when digests were switched off."""
        return bool(self._get("digests", True))

    @property
    def verify(self) -> str:
        """"on_read", "off", "structure" or "deep"."""
        return str(self._get("verify", ""))

    @property
    def tensors(self) -> int:
        """Tensors that took part."""
        return int(self._get("tensors", 0))

    @property
    def objects(self) -> int:
        """Byte objects that took part."""
        return int(self._get("objects", 0))

    @property
    def chunks(self) -> int:
        """Chunks that were written or read."""
        return int(self._get("chunks", 0))

    @property
    def files(self) -> int:
        """Data files of the whole checkpoint; of a removal, those that hold nothing else."""
        return int(self._get("files", 0))

    @property
    def bytes_files(self) -> int:
        """Size of `files`."""
        return int(self._get("bytes_files", 0))

    @property
    def bytes_written(self) -> int:
        """Payload bytes that this rank wrote."""
        return int(self._get("bytes_written", 0))

    @property
    def bytes_read(self) -> int:
        """Bytes that this rank read from the storage."""
        return int(self._get("bytes_read", 0))

    @property
    def bytes_over_read(self) -> int:
        """Bytes that this rank read beyond what was wanted, to check whole digest blocks."""
        return int(self._get("bytes_over_read", 0))

    @property
    def bytes_cached(self) -> int:
        """How much of `bytes_read` is known to have come from the page cache."""
        return int(self._get("bytes_cached", 0))

    @property
    def bytes_unverified(self) -> int:
        """Bytes that were wanted and compared with no digest or checksum: ranges of records, or what has none."""
        return int(self._get("bytes_unverified", 0))

    @property
    def bytes_total(self) -> int:
        """Payload bytes of the whole checkpoint."""
        return int(self._get("bytes_total", 0))

    @property
    def collective(self) -> str:
        """Name of the transport between the ranks, such as "c10d", "torch.distributed" (its stand-in in Python) or "threads";
        "single" for one rank, empty where the host moved the bytes."""
        return str(self._get("collective", ""))

    @property
    def bytes_received(self) -> int:
        """Bytes that came to this rank from others through the collective."""
        return int(self._get("bytes_received", 0))

    @property
    def loaded(self) -> list[str]:
        """Names of the entries that were filled."""
        return list(self._get("loaded", ()))

    @property
    def missing(self) -> list[str]:
        """Names that were wanted but are not stored; their targets are untouched."""
        return list(self._get("missing", ()))

    @property
    def unexpected(self) -> list[str]:
        """Names that are stored but were not wanted."""
        return list(self._get("unexpected", ()))

    @property
    def casts(self) -> list[Cast]:
        """Tensors that were converted."""
        return [Cast(c["name"], c["stored"], c["wanted"]) for c in self._get("casts", ())]

    @property
    def shapes(self) -> list[ShapeChange]:
        """Tensors that were cropped or padded."""
        return [ShapeChange(s["name"], tuple(s["stored"]), tuple(s["wanted"])) for s in self._get("shapes", ())]

    @property
    def damage(self) -> list[dict[str, Any]]:
        """What a verification found: message, tensor, box, file, offset, length."""
        return [dict(d) for d in self._get("damage", ())]

    @property
    def removed(self) -> list[dict[str, Any]]:
        """Generations that a clean-up removed, or entries that a removal did, or would: name, bytes."""
        return [dict(r) for r in self._get("removed", ())]

    @property
    def notes(self) -> list[str]:
        """What was skipped or is not supported."""
        return list(self._get("notes", ()))

    @property
    def seconds(self) -> float:
        """Time of the whole call."""
        return float(self._get("elapsed_ns", 0)) / 1e9

    def _repr_html_(self) -> str:
        """For notebooks: what was done, and every list of names that is not empty."""
        facts = {"path": self.path, "format": self.format, "generation": self.generation, "tensors": str(self.tensors),
                 "byte objects": str(self.objects), "bytes of the checkpoint": _html.size(self.bytes_total),
                 "written here": _html.size(self.bytes_written), "read here": _html.size(self.bytes_read),
                 "durability": self.durability, "seconds": f"{self.seconds:.3f}"}
        lists = {"missing": self.missing, "unexpected": self.unexpected, "cast": [str(tuple(c)) for c in self.casts],
                 "reshaped": [str(tuple(c)) for c in self.shapes], "damage": [str(d.get("message")) for d in self.damage],
                 "removed": [str(r.get("name")) for r in self.removed], "notes": self.notes}
        return _html.section(f"Report of a {self.operation}", facts) + "".join(
            _html.table((title,), [(text,) for text in texts[:_html.ROWS_MAX]], len(texts))
            for title, texts in lists.items() if texts)

    def __repr__(self) -> str:
        return (f"shardwright.Report({self.operation} {self.path!r}: {self.tensors} tensors, {self.objects} objects, "
                f"{self.bytes_total} bytes, {self.seconds:.3f} s)")
