# SPDX-License-Identifier: Apache-2.0
"""The examples of torch's checkpoints: planners on four processes and two, and a job that is killed on two and goes on on three."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[3]))
SECONDS = 400


def run(program, folder):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SOURCE / "examples" / program), str(folder)], env=env, capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_checkpoint_of_four_ranks_is_loaded_by_two(tmp_path):
    said = run("torch_dcp/reshard.py", tmp_path / "c")
    assert re.search(r"204 items of 4 ranks came in \d+ bytes", said), said
    assert "loaded on 2 ranks: step 12, weights equal, unexpected [], casts {}" in said, said


def test_a_job_that_is_killed_on_two_ranks_goes_on_on_three(tmp_path):
    said = run("fsdp2_train/demo.py", tmp_path)
    assert "2 ranks: 8 steps, then killed: exit codes [-9, -9]" in said, said
    assert "resumed step-00000008 on 3 ranks" in said and "torch reads step 12" in said, said
