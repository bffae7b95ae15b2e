# SPDX-License-Identifier: Apache-2.0
"""Archives by Python's zipfile and what it reads of them: zip_oracle.py FOLDER SEED SOUND DAMAGED, zip_oracle.py --list FILE.

N.zip is an archive, of which those from SOUND on are damaged; N.txt has a line for each entry: name in hex, size, checksum of the
payload as zipfile reads it; or one line "refused" when it reads none, or not all.
"""

from __future__ import annotations

import io
import random
import sys
import warnings
import zipfile
import zlib
from pathlib import Path


def listing(path: Path) -> str:
    """What zipfile makes of an archive."""
    lines = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    payload = archive.read(entry)
                    lines.append(f"{entry.orig_filename.encode().hex()} {len(payload)} {zlib.crc32(payload)}")
    except Exception:  # it raises whatever its parts raise
        return "refused\n"
    return "".join(line + "\n" for line in lines)


def sound(source: random.Random) -> bytes:
    """Stored entries in one of the forms that zipfile writes."""
    buffer = io.BytesIO()
    target = Unseekable(buffer) if source.random() < 0.3 else buffer
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for number in range(source.randint(0, 6)):
            name = source.choice(["archive/data/%d", "a-%d", "\u00e9/\u65e5%d"]) % number
            payload = source.randbytes(source.choice([0, 1, 100, 5000]))
            with archive.open(name, "w", force_zip64=source.random() < 0.3) as entry:
                entry.write(payload)
        if source.random() < 0.3:
            archive.comment = source.randbytes(source.choice([1, 30, 0xFFFF])).replace(b"PK", b"xx")
    return buffer.getvalue()


class Unseekable(io.RawIOBase):
    """A stream, so that sizes follow the payload."""

    def __init__(self, target: io.BytesIO) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        return self._target.write(data)


def damaged(source: random.Random) -> bytes:
    """A sound archive of which a few bytes were changed, mostly near its records."""
    archive = bytearray(sound(source))
    begins = [at for at in range(len(archive) - 1) if archive[at:at + 2] == b"PK"]
    for _ in range(source.randint(1, 3)):
        at = source.choice(begins) + source.randint(0, 60) if source.random() < 0.8 else source.randrange(len(archive))
        if at < len(archive):
            archive[at] = source.choice([0, 1, 0xFF, archive[at] ^ (1 << source.randrange(8))])
    if source.random() < 0.1:
        del archive[source.randrange(len(archive)):]
    return bytes(archive)


def main() -> None:
    if sys.argv[1] == "--list":
        sys.stdout.write(listing(Path(sys.argv[2])))
        return
    folder, source, first_damaged = Path(sys.argv[1]), random.Random(int(sys.argv[2])), int(sys.argv[3])
    for number in range(first_damaged + int(sys.argv[4])):
        path = folder / f"{number}.zip"
        path.write_bytes(sound(source) if number < first_damaged else damaged(source))
        (folder / f"{number}.txt").write_text(listing(path))


if __name__ == "__main__":
    main()
