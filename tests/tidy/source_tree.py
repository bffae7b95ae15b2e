# SPDX-License-Identifier: Apache-2.0
"""The files that the checks read: tracked ones and new ones that git does not ignore, as a map from path to text.

Paths are relative to the root and use '/'. A tree can be made from a dict, which is how the checks are tested.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

CPP_SUFFIXES = (".h", ".hpp", ".cc", ".c", ".cu")


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule. Line 0 means the file as a whole."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.rule}: {self.text}"


class SourceTree:
    """Read-only view of a working tree; immutable once made, apart from the cache of texts."""

    def __init__(self, root: Path | None, texts: dict[str, str | None]) -> None:
        self.root = root
        self._texts = texts

    @staticmethod
    def of_repository(root: Path) -> SourceTree:
        """Every file of the working tree that git tracks or would track."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=root, check=True, capture_output=True).stdout
        paths = sorted({name for name in listed.decode().split("\0") if name})
        return SourceTree(root, {path: None for path in paths if (root / path).is_file()})

    @staticmethod
    def of_texts(texts: dict[str, str]) -> SourceTree:
        return SourceTree(None, dict(texts))

    def paths(self, *suffixes: str, under: tuple[str, ...] = ()) -> Iterator[str]:
        """Paths with one of the suffixes (all when none is given) below one of the folders (anywhere when empty)."""
        for path in self._texts:
            if suffixes and not path.endswith(suffixes):
                continue
            if under and not path.startswith(tuple(f"{folder}/" for folder in under)):
                continue
            yield path

    def exists(self, path: str) -> bool:
        """True for a file, and for a folder that holds one."""
        return path in self._texts or any(known.startswith(f"{path.rstrip('/')}/") for known in self._texts)

    def text(self, path: str) -> str:
        """Text of a file; bytes that are not UTF-8 become replacement characters."""
        text = self._texts[path]
        if text is None:
            assert self.root is not None
            text = (self.root / path).read_bytes().decode("utf-8", errors="replace")
            self._texts[path] = text
        return text

    def lines(self, path: str) -> list[str]:
        return self.text(path).split("\n")

    def is_binary(self, path: str) -> bool:
        return "\0" in self.text(path) or PurePosixPath(path).suffix in (".bin", ".shw", ".png", ".gz")
