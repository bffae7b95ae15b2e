# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's documented algorithm for the same row shards, written in Python: every wanted box against every stored
chunk, intersected dimension by dimension, one object per read.
"""
from typing import NamedTuple

from driver.contender import Base


class Chunk(NamedTuple):
    offsets: tuple
    sizes: tuple


class Read(NamedTuple):
    name: str
    wanted: int
    stored: int
    wanted_offsets: tuple
    stored_offsets: tuple
    lengths: tuple


def intersection(a, b):
    """Begins and lengths of the common part, or nothing."""
    begins, lengths = [], []
    for offset, size, other_offset, other_size in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True):
        begin, end = max(offset, other_offset), min(offset + size, other_offset + other_size)
        if begin >= end:
            return None
        begins.append(begin)
        lengths.append(end - begin)
    return begins, lengths


def relative(begins, offsets):
    return tuple(b - o for b, o in zip(begins, offsets, strict=True))


def reads_of(name, stored, wanted):
    found = []
    for i, want in enumerate(wanted):
        for j, chunk in enumerate(stored):
            common = intersection(want, chunk)
            if common:
                begins, lengths = common
                found.append(Read(name, i, j, relative(begins, want.offsets), relative(begins, chunk.offsets),
                                  tuple(lengths)))
    return found


class Contender(Base):
    def setup(self):
        chunks = self.params["chunks"]
        self.stored = [Chunk((8 * i, 0), (8, 64)) for i in range(chunks)]
        self.wanted = [Chunk((3 * chunks, 0), (chunks, 64))]

    def prepare(self):
        self.reads = None  # the last ones are not dropped in the timing

    def run(self):
        self.reads = []
        for t in range(self.params["tensors"]):
            self.reads += reads_of(f"layers.{t}.weight", self.stored, self.wanted)
        return {"reads": len(self.reads)}

    def check(self):
        return len(self.reads) == self.params["tensors"] * self.params["chunks"] // 8
