# SPDX-License-Identifier: Apache-2.0
"""`python -m shardwright` is the command line program that comes with the package, or the one on PATH."""
from __future__ import annotations

import os
import shutil
import sys


def main() -> int:
    """Replaces this process by the program; 69 when there is none."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native", "shardwright")
    program = beside if os.access(beside, os.X_OK) else shutil.which("shardwright")
    if program is None or os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        print(f"shardwright: the command line program is missing from {os.path.dirname(beside)} and from PATH",
              file=sys.stderr)
        return 69
    os.execv(program, ["shardwright", *sys.argv[1:]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
