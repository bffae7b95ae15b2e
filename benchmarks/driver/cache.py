# SPDX-License-Identifier: Apache-2.0
"""Makes files cold (written back, dropped from the page cache) or warm (read), and proves it by mincore."""
import ctypes
import mmap
import os

RESIDENT_LIMIT = 0.01  # of a cold file
MISSING_LIMIT = 0.01  # of a warm one
WARM_TRIES = 5
_libc = ctypes.CDLL(None, use_errno=True)


def files_below(path):
    if os.path.isfile(path):
        return [path]
    return [os.path.join(d, n) for d, _, names in os.walk(path) for n in names]


def resident_share(path):
    size = os.path.getsize(path)
    if size == 0:
        return 0.0
    with open(path, "rb") as f, mmap.mmap(f.fileno(), size, prot=mmap.PROT_READ) as view:
        pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        seen = (ctypes.c_ubyte * pages)()
        # The address of a read-only map is only reachable through a buffer that numpy or the C API gives.
        import numpy
        array = numpy.frombuffer(view, dtype=numpy.uint8)
        address = ctypes.c_void_p(array.ctypes.data)
        failed = _libc.mincore(address, ctypes.c_size_t(size), seen)
        del array
        if failed:
            raise OSError(ctypes.get_errno(), "mincore", path)
        return sum(b & 1 for b in seen) / pages


def drop(path):
    """Raises when more than 1 % of some file stays resident."""
    for name in files_below(path):
        fd = os.open(name, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
        share = resident_share(name)
        if share > RESIDENT_LIMIT:
            raise RuntimeError(f"{name} is still {share:.0%} in the page cache")


def read_through(name):
    fd = os.open(name, os.O_RDONLY)
    try:
        os.fsync(fd)
        while os.read(fd, 1 << 23):
            pass
    finally:
        os.close(fd)


def warm(path):
    """Raises when more than 1 % of some file is not resident after it was read, several times where memory is short."""
    for name in files_below(path):
        for _ in range(WARM_TRIES):
            read_through(name)
            share = resident_share(name) if os.path.getsize(name) else 1.0
            if share >= 1 - MISSING_LIMIT:
                break
        else:
            raise RuntimeError(f"only {share:.1%} of {name} stays in the page cache; is memory short?")


def make(state, path):
    """Brings the files below path into the state "cold" or "warm"."""
    {"cold": drop, "warm": warm}[state](path)


def sync_tree(path):
    """fsync of every file and directory below path, and of its parent."""
    for d, _, names in os.walk(path):
        for n in names + ["."]:
            fd = os.open(os.path.join(d, n), os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
    sync_one(os.path.dirname(os.path.abspath(path)))


def sync_one(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
