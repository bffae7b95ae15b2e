# SPDX-License-Identifier: Apache-2.0
"""The table at the end of the demo: what was done, how long it took, and the throughput beside the machine's floor."""
import dataclasses
import json
import os
import subprocess


@dataclasses.dataclass
class Row:
    what: str
    result: str
    seconds: float | None = None
    size_bytes: int | None = None
    floor: str | None = None


def floors(build, directory, size_bytes):
    """Kind -> bytes per second that plain direct I/O of the same size reaches in the same directory."""
    program, found = os.path.join(build, "bin", "floor"), {}
    for kind in ("dwrite", "dread"):
        done = subprocess.run([program, kind, str(size_bytes), "3", directory], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            found[kind] = json.loads(done.stdout)["gbps_median"] * 1e9
    return found


def rate_text(row, known):
    if row.size_bytes is None or not row.seconds:
        return ""
    rate = row.size_bytes / row.seconds
    text = f"{rate / 1e9:.2f} GB/s"
    return text + f" ({rate / known[row.floor]:.0%} of {row.floor} {known[row.floor] / 1e9:.2f})" if row.floor in known else text


def render(rows, known):
    cells = [["what", "seconds", "MB", "throughput", "result"]]
    for row in rows:
        cells.append([row.what, "" if row.seconds is None else f"{row.seconds:.2f}",
                      "" if row.size_bytes is None else f"{row.size_bytes / 1e6:.0f}", rate_text(row, known), row.result])
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths)) + "  " + line[4] for line in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines))] + lines[1:])
