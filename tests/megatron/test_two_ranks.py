# SPDX-License-Identifier: Apache-2.0
"""The cases of rank_cases.py over two Gloo processes, in one launch."""
import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import originals
import pytest

HERE = Path(__file__).parent
LAUNCH_SECONDS = 200


def case_names():
    tree = ast.parse((HERE / "rank_cases.py").read_text(encoding="ascii"))
    return [f.name for f in tree.body if isinstance(f, ast.FunctionDef)
            and any(getattr(decorator, "id", "") == "case" for decorator in f.decorator_list)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Case to what each rank said, and what the processes said at their end."""
    if not originals.is_installed():
        pytest.skip("megatron-core is not installed")
    folder = tmp_path_factory.mktemp("ranks")
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    processes = [subprocess.Popen([sys.executable, str(HERE / "rank_worker.py"), str(rank), str(folder)], env=env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
    found, errors = {}, []
    try:
        for rank, process in enumerate(processes):
            out, err = process.communicate(timeout=LAUNCH_SECONDS)
            for line in out.splitlines():
                if line.startswith('{"case"'):
                    row = json.loads(line)
                    found.setdefault(row["case"], {})[rank] = row["outcome"]
            if process.returncode:
                errors.append(f"rank {rank} ended with {process.returncode}:\n{err[-3000:]}")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return found, errors


@pytest.mark.parametrize("case", case_names())
def test_case(case, outcomes):
    found, errors = outcomes
    said = [found.get(case, {}).get(rank, "it did not run") for rank in range(2)]
    assert said == ["ok", "ok"], "\n".join([*said, *errors])


def test_processes_end_by_themselves(outcomes):
    assert outcomes[1] == []
