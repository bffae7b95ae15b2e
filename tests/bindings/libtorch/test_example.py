# SPDX-License-Identifier: Apache-2.0
"""examples/libtorch_train: two processes without Python have the bits of one; the command line verifies what they saved."""
import os
import subprocess
from pathlib import Path

import pytest

BIN = Path(os.environ["SHW_BUILD_DIR"]) / "bin"
STEPS = 8
ABORTED = 10


@pytest.fixture
def example() -> Path:
    """The program."""
    program = BIN / "libtorch_train"
    if not program.exists():
        pytest.skip("torch was not there when this tree was configured, so libtorch_train was not built")
    return program


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """What a command says."""
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=200, check=False)


def test_two_processes_have_the_bits_of_one(example, tmp_path):
    folder = tmp_path / "run"
    trained = run(example, folder)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    lines = trained.stdout.splitlines()
    assert lines[-1] == "2 ranks and one process have equal parameters"
    for rank in (0, 1):
        losses = [float(line.split()[-1]) for line in lines if f" rank {rank} loss " in line]
        assert len(losses) == STEPS and all(loss > 0 for loss in losses)
    verified = run(BIN / "shardwright", "verify", "--deep", folder / "checkpoint")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "whole" in verified.stdout


def test_a_folder_that_is_there_is_refused(example, tmp_path):
    refused = run(example, tmp_path)
    assert refused.returncode == 2 and "must not be there yet" in refused.stderr


def test_a_process_that_is_killed_is_named(example, tmp_path):
    program = BIN.parent / "tests" / "killed_rank"
    ranks = [subprocess.Popen([program, str(rank), tmp_path], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    said = ranks[0].communicate(timeout=100)[0]
    assert ranks[1].wait(timeout=100) == -9
    assert ranks[0].returncode == 3, said
    status, message = said.split(" ", 1)
    assert int(status) == ABORTED, said
    assert "rank 1 is gone" in message and "unit '" in message and "all_" in message, said
