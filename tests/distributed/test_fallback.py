# SPDX-License-Identifier: Apache-2.0
"""Where the plugin cannot be used: its stand-in carries the calls, and why is logged once."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")
LIBRARIES = Path(os.environ["SHW_BUILD_DIR"]) / "lib"


def found(tmp_path, **environment):
    env = {name: value for name, value in os.environ.items() if name != "SHW_TORCH_COLLECTIVE"} | {
        "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)} | environment
    script = Path(__file__).with_name("fallback_rank.py")
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], env=env, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def describe(folder, version, library="libshardwright_torch.so"):
    """A plugin that comes first in the search and says that it was compiled for that torch."""
    folder.mkdir()
    (folder / "torch.shw-plugin.json").write_text(json.dumps({"name": "torch", "file": library, "torch": version}))
    return str(folder)


def check_fallen_back(told, *texts):
    assert (told["kind"], told["collective"]) == ("python", "torch.distributed"), told
    assert all(text in told["reason"] for text in texts), told
    assert [text for text in told["logged"] if told["reason"] in text] == told["logged"], told
    assert len(told["logged"]) == 1, told


def test_the_plugin_carries_calls_where_nothing_is_wrong(tmp_path):
    told = found(tmp_path)
    assert (told["kind"], told["collective"], told["logged"]) == ("c10d", "c10d", []), told


def test_a_plugin_for_another_torch_is_not_loaded(tmp_path):
    told = found(tmp_path, SHW_PLUGIN_PATH=describe(tmp_path / "plugins", "2.14.0"))
    check_fallen_back(told, "torch 2.14.0", f"torch {told['torch']}")


def test_a_plugin_that_is_not_there(tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(LIBRARIES / "libshardwright.so.0", alone)
    told = found(tmp_path, SHW_LIBRARY_PATH=str(alone))
    check_fallen_back(told, "plugin 'torch' is in none of")


def test_a_file_that_is_no_plugin(tmp_path):
    folder = describe(tmp_path / "plugins", "")
    Path(folder, "libshardwright_torch.so").write_text("no library")
    told = found(tmp_path, SHW_PLUGIN_PATH=folder)
    check_fallen_back(told, "cannot be loaded")


def test_who_insists_on_the_plugin_gets_an_error(tmp_path):
    folder = describe(tmp_path / "plugins", "2.14.0")
    with pytest.raises(AssertionError, match="FailedPreconditionError.*SHW_TORCH_COLLECTIVE is c10d on rank 0"):
        found(tmp_path, SHW_PLUGIN_PATH=folder, SHW_TORCH_COLLECTIVE="c10d")
