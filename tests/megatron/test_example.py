# SPDX-License-Identifier: Apache-2.0
"""The example of resharding: a GPT of megatron-core goes on in a shape that Megatron alone refuses."""
import os
import subprocess
import sys
from pathlib import Path

import originals
import pytest

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))
SECONDS = 400


@pytest.mark.skipif(not originals.is_installed(), reason="megatron-core is not installed")
def test_a_job_goes_on_in_another_shape(tmp_path):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SOURCE / "examples/megatron_gpt/demo.py"), str(tmp_path), "--small"], env=env,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TP2-to-TP1xDP2" in done.stdout and "NO" not in done.stdout, done.stdout
