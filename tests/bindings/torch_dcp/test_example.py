# SPDX-License-Identifier: Apache-2.0
"""The example of the torch planners saves on four processes and loads on two."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[3]))
SECONDS = 180


def test_a_checkpoint_of_four_ranks_is_loaded_by_two(tmp_path):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SOURCE / "examples" / "torch_dcp" / "reshard.py"), str(tmp_path / "c")],
                          env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"204 items of 4 ranks came in \d+ bytes", done.stdout), done.stdout
    assert "loaded on 2 ranks: step 12, weights equal, unexpected [], casts {}" in done.stdout, done.stdout
