# SPDX-License-Identifier: Apache-2.0
"""The package as such: what it imports, what it says about versions, its types, its stubs, its log."""
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import shardwright

PACKAGE = Path(shardwright.__file__).parent
BLOCKER = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "torch", "mindspore"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Block())
"""


def test_numpy_is_optional_and_torch_is_never_imported(tmp_path, run_python):
    done = run_python(BLOCKER + """
import array, sys, shardwright
shardwright.save({"w": array.array("f", [1, 2, 3]), "n": [1]}, sys.argv[1])
with shardwright.open(sys.argv[1]) as c:
    part = c["w"][1:]
    print(type(part).__name__, memoryview(part).tolist(), c["w"][0].shape)
target = array.array("f", [0, 0, 0])
shardwright.load(sys.argv[1], into={"w": target})
print(list(target), shardwright.load(sys.argv[1])["n"])
""", tmp_path / "p")
    assert done.stdout.split("\n")[:2] == ["Tensor [2.0, 3.0] ()", "[1.0, 2.0, 3.0] [1]"], done.stderr
    done = run_python("import shardwright, sys; print(sorted({'torch', 'numpy', 'mindspore'} & set(sys.modules)))")
    assert done.stdout.strip() == "[]"


def test_the_library_can_be_chosen_and_a_wrong_one_is_named(run_python, tmp_path):
    library = (PACKAGE / "_native" / "libshardwright.so.0").resolve()
    for choice in (library, library.parent):
        done = run_python("import shardwright; print(shardwright.__version__)", SHW_LIBRARY_PATH=str(choice))
        assert done.stdout.strip() == shardwright.__version__, done.stderr
    (tmp_path / "libshardwright.so.0").write_bytes(b"no library")
    done = run_python("import shardwright", SHW_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 1 and "SHW_LIBRARY_PATH" in done.stderr and str(tmp_path) in done.stderr


def test_versions_that_do_not_fit_are_both_named(run_python):
    done = run_python("""
        from shardwright import _library
        from shardwright._library import native
        native.shw_py_versions = lambda: (0, 1, 0, 7, "0.7.3")
        try:
            _library._load()
        except ImportError as e:
            print(e)
    """)
    assert "0.1" in done.stdout and "0.7" in done.stdout and "0.7.3" in done.stdout


def test_every_public_name_is_there_and_documented():
    for name in shardwright.__all__:
        thing = getattr(shardwright, name)
        assert name == "__version__" or thing.__doc__, name


def test_the_log_is_silent_until_it_is_wanted(tmp_path, run_python):
    program = """
        import logging, sys
        if len(sys.argv) > 2: logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
        import numpy as np, shardwright
        shardwright.save({"w": np.ones(3)}, sys.argv[1])
        shardwright.open(sys.argv[1]).verify(deep=True)
        shardwright.collect_garbage(sys.argv[1], grace=-1)
    """
    done = run_python(program, tmp_path / "p")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    done = run_python(program, tmp_path / "p", "loud")
    assert done.returncode == 0 and done.stderr == ""
    for said in ("INFO:shardwright:exec: rank 0 of 1: saving to ", "DEBUG:shardwright:exec: rank 0 of 1: results: ",
                 "INFO:shardwright:exec: rank 0 of 1: committed generation ",
                 "INFO:shardwright:exec: verifying generation ", "INFO:shardwright:exec: verified: 0 findings, ",
                 "INFO:shardwright:exec: gc looks at ",
                 "INFO:shardwright:exec: gc would remove 0 generations of 0 bytes; dry run: nothing was removed"):
        assert said in done.stdout


def test_records_of_the_library_reach_logging(monkeypatch, caplog):
    from shardwright import _log
    from shardwright._library import native
    monkeypatch.setattr(native, "shw_py_log_drain", lambda: [(3, "exec", "text \U0001F600", 2)])
    with caplog.at_level(logging.DEBUG, "shardwright"):
        _log.drain()
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "2 log records of the library were lost"), ("WARNING", "exec: text \U0001F600")]


@pytest.mark.skipif(subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode != 0,
                    reason="mypy is not installed")
def test_types_hold(tmp_path):
    source = Path(__file__).parents[3] / "bindings" / "python"
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"),
                              "--ignore-missing-imports", "-p", "shardwright"],
                             cwd=source, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout[-4000:]


@pytest.mark.skipif(subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode != 0,
                    reason="mypy is not installed")
def test_stubs_of_the_extension_fit_it(tmp_path):
    # CPython 3.11 has no __buffer__ to find, but type checkers know buffers by it.
    allowed = tmp_path / "allowed"
    allowed.write_text(r"shardwright\._native\._shw_native\.TensorBase\.__buffer__" + "\n", encoding="ascii")
    checked = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub", "--allowlist",
                              str(allowed), "shardwright._native._shw_native"],
                             cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout[-4000:]
