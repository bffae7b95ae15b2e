# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a module over Gloo processes, in one launch, and says how each ended."""
import ast
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "support"))
import rank_outcomes  # noqa: E402

LAUNCH_SECONDS = 600


def case_names(module):
    """Functions of a module of cases that are decorated with @case; the module is not imported."""
    tree = ast.parse((HERE / f"{module}.py").read_text(encoding="ascii"))
    return [f.name for f in tree.body if isinstance(f, ast.FunctionDef)
            and any(getattr(decorator, "id", "") == "case" for decorator in f.decorator_list)]


def run(module, world_size, folder):
    """(case to what each rank said, what processes said that did not end well)."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, str(HERE / "rank_worker.py"), module, str(world_size), str(folder)]
    processes = [subprocess.Popen([*command, str(rank)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for rank in range(world_size)]
    return rank_outcomes.gather(processes, LAUNCH_SECONDS)


def check(case, world_size, outcomes):
    """Asserts that every rank ended a case well."""
    found, errors = outcomes
    said = [found.get(case, {}).get(rank, "it did not run") for rank in range(world_size)]
    assert said == ["ok"] * world_size, "\n".join([*said, *errors])
