# SPDX-License-Identifier: Apache-2.0
"""The small form of examples/torch_hsdp: on four processes, on three, and in one, with equal bits."""
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")
SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))
SECONDS = 400


def test_a_transformer_has_the_bits_of_one_process_on_four_ranks_and_on_three(tmp_path):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SOURCE / "examples" / "torch_hsdp" / "demo.py"), str(tmp_path), "--small"], env=env,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("shardwright, 2 x 2", "continued by shardwright on 3"):
        assert re.search(rf"^{name} .* 100\.00%", done.stdout, re.MULTILINE), done.stdout
