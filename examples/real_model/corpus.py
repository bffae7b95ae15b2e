# SPDX-License-Identifier: Apache-2.0
"""Real text that the machine already has: the licence texts of Debian, else the licence of this project."""
import pathlib

import torch

START_MARK = 256


def read_text(fallback):
    """All text found, as bytes; fallback is the path of the project's own licence."""
    folder = pathlib.Path("/usr/share/common-licenses")
    files = sorted(p for p in folder.glob("*") if p.is_file() and not p.is_symlink()) if folder.is_dir() else []
    return b"\n".join(p.read_bytes() for p in files) or pathlib.Path(fallback).read_bytes()


class Batches:
    """Batch of step n is a function of n alone, so that a resumed run sees the text that the first one would see."""

    def __init__(self, text, sequences, context):
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        self.sequences, self.context = sequences, context

    def at(self, step, rank, world_size):
        """This rank's share, (sequences / world_size, context + 1), each row led by the start mark."""
        generator = torch.Generator().manual_seed(step)
        starts = torch.randint(0, len(self.text) - self.context, (self.sequences,), generator=generator)
        share = self.sequences // world_size
        rows = [self.text[s : s + self.context] for s in starts[rank * share : (rank + 1) * share]]
        mark = torch.full((share, 1), START_MARK)
        return torch.cat([mark, torch.stack(rows)], dim=1)
