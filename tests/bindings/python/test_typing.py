# SPDX-License-Identifier: Apache-2.0
"""What type checkers see: options with their words, and what a load gives."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "bindings" / "python"
PROGRAM = '''\
from typing import Any, assert_type

import shardwright
from shardwright import Job, Report, StoredTensor

class Model:
    def state_dict(self) -> dict[str, Any]: return {}
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

class Bar:
    total: float | None = None
    def update(self, n: float = 1) -> bool | None: ...

async def use(state: dict[str, Any]) -> None:
    assert_type(shardwright.save(state, "p", owner="exact", kind={"rng*": "rank_local"},
                                 digests=False), Report)
    assert_type(shardwright.save(Model(), "p", progress=print, kind=[("rng*", "rank_local")]), Report)
    assert_type(shardwright.save({"model": Model()}, "p", progress=Bar()), Report)
    assert_type(shardwright.load("p"), dict[Any, Any])
    assert_type(shardwright.load("p", state, strict={"*": ("report", "error", "allow")}, cast="allow"), Report)
    assert_type(shardwright.load("p", into=Model()), Report)
    assert_type(shardwright.save_async(state, "p", metadata={"step": "1"}), Job)
    assert_type(await shardwright.save_async(state, "p"), Report)
    with shardwright.open("p", verify="off") as c:
        assert_type(c["w"], StoredTensor)
        assert_type(c.get("w"), StoredTensor | None)
        assert_type([t for _, t in c.items()], list[StoredTensor])
    shardwright.save(state, "p", owner="everyone")  # wrong
    shardwright.save(state, "p", overwrte="refuse")  # wrong
    shardwright.save(state, "p", metadata={"step": 1})  # wrong
    shardwright.load("p", state, missing="ignore")  # wrong
    shardwright.load("p", state, overwrite="replace")  # wrong
    shardwright.open("p", missing="report")  # wrong
'''


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_type_checkers_know_the_options_and_what_calls_give(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="ascii")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "--follow-imports",
                           "silent", "--ignore-missing-imports", "--no-error-summary", program],
                          cwd=PACKAGE, capture_output=True, text=True, check=False)
    wrong = [i for i, line in enumerate(PROGRAM.split("\n"), 1) if line.endswith("# wrong")]
    found = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert sorted(set(found)) == wrong, done.stdout
