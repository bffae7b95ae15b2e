# SPDX-License-Identifier: Apache-2.0
"""The extension module of shardwright.torch: who loads it, what its errors are, its stubs."""
import subprocess
import sys
from pathlib import Path

import pytest
import shardwright
from shardwright.torch import _library

PACKAGE = Path(shardwright.__file__).parent


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


def test_only_what_plans_for_torch_loads_it():
    loaded = "; print(any('_shw_torch' in line for line in open('/proc/self/maps')))"
    assert run("import shardwright; shardwright.zeros('int8', (1,))" + loaded) == "False"
    assert run("import shardwright.torch" + loaded) == "False"
    assert run("import shardwright.torch.dcp.planner" + loaded) == "True"


def test_the_neutral_module_knows_nothing_of_plans_of_torch():
    from shardwright._library import native as neutral
    assert not [name for name in dir(neutral) if name.startswith(("items_", "reads_"))]
    bytes_of_module = Path(sys.modules["shardwright._native._shw_native"].__file__).read_bytes()
    assert b"bytes_io_data" not in bytes_of_module and b"dest_offsets" not in bytes_of_module


def test_its_errors_are_those_of_the_library():
    with pytest.raises(shardwright.ShardwrightError) as caught:
        _library.native.items_decode(b"no plan at all", None)
    assert caught.value.code and caught.value.message


def test_a_package_without_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "shardwright.torch._native._shw_torch", None)
    monkeypatch.delattr(sys.modules["shardwright.torch._native"], "_shw_torch")
    with pytest.raises(ImportError, match=r"extension module of shardwright\.torch.*one release"):
        _library._load()


@pytest.mark.skipif(subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode != 0,
                    reason="mypy is not installed")
def test_its_stubs_fit_it():
    checked = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub",
                              "shardwright.torch._native._shw_torch"],
                             cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout[-4000:]
