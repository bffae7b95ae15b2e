# SPDX-License-Identifier: Apache-2.0
"""shardwright.mindspore: with MindSpore, in the interpreter that SHW_MINDSPORE_PYTHON names (.venv/mindspore/bin/python
when it is there), and the error without it."""
import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", HERE.parents[2]))
INTERPRETER = Path(os.environ.get("SHW_MINDSPORE_PYTHON", SOURCE / ".venv" / "mindspore" / "bin" / "python"))
SECONDS = 240
CASES = next([name.id for name in node.value.elts] for node in ast.parse((HERE / "mindspore_cases.py").read_text()).body
             if isinstance(node, ast.Assign) and node.targets[0].id == "CASES")
_outcomes = {}


def outcomes():
    if not _outcomes:
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent / "python"), *packages()])}
        done = subprocess.run([str(INTERPRETER), str(HERE / "mindspore_cases.py")], env=env, timeout=SECONDS,
                              capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]
        _outcomes.update({row["case"]: row["outcome"] for row in rows} or {"": done.stderr[-3000:]})
    return _outcomes


def packages():
    """Where this library lies; the rest of this interpreter's path is not for another one."""
    import shardwright
    return [str(Path(shardwright.__file__).parents[1])]


@pytest.mark.skipif(not INTERPRETER.exists(),
                    reason="no MindSpore: tools/bootstrap.sh mindspore-wait, or SHW_MINDSPORE_PYTHON")
@pytest.mark.parametrize("case", CASES)
def test_case(case):
    assert outcomes().get(case) == "ok", outcomes().get(case, outcomes().get("", "it did not run"))


def test_without_mindspore_the_error_says_what_to_install():
    program = """
import sys
sys.modules["mindspore"] = None
import shardwright
try:
    import shardwright.mindspore
except ImportError as e:
    print(e)
"""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": os.pathsep.join(packages())},
                          capture_output=True, text=True, check=False)
    assert "pip install 'mindspore" in done.stdout, done.stderr
