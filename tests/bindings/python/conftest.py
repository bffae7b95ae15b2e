# SPDX-License-Identifier: Apache-2.0
"""Vocabulary of the Python suite: arrays, damaged files, and processes that must end by themselves."""
import os
import subprocess
import sys
import textwrap

import pytest

PROCESS_SECONDS = 240


@pytest.fixture
def run_python():
    """Runs a program in a fresh interpreter; its exit code and output. One that hangs fails the test."""

    def run(program, *arguments, seconds=PROCESS_SECONDS, **environment):
        here = os.path.dirname(os.path.abspath(__file__))
        env = os.environ | {"PYTHONPATH": os.pathsep.join([here, *sys.path])} | environment
        return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)], env=env,
                              timeout=seconds, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def data_file():
    """The only data file of a checkpoint."""

    def find(path):
        found = list(path.glob("*/rank-00000.shw"))
        assert len(found) == 1
        return found[0]

    return find
