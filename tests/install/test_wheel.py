# SPDX-License-Identifier: Apache-2.0
"""`pip install .` gives an abi3 wheel that works in a fresh environment without numpy and brings the command line."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(os.environ["SHW_SOURCE_DIR"])
BUILD = Path(os.environ["SHW_BUILD_DIR"])
VERSION = (SOURCE / "VERSION").read_text().strip()


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def clean_environment():
    """No PYTHONPATH and no library path: only what the wheel brings."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "SHW_LIBRARY_PATH", "VIRTUAL_ENV")}
    return kept | {"CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(SOURCE)}


def cached(pattern):
    """Entries of the build tree's cache whose whole name matches."""
    return dict(re.findall(rf"^({pattern}):\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M))


def compilers():
    """The compilers of the build tree, by the name under which CMake keeps them."""
    return {name: shutil.which(value) or value for name, value in cached(r"CMAKE_C(?:XX)?_COMPILER").items()}


def torch_of_the_build():
    """A torch that was installed after the build tree was configured is left out of the wheel as well."""
    return "OFF" if cached("SHW_TORCH_LEFT_OUT").get("SHW_TORCH_LEFT_OUT") == "TRUE" else "AUTO"


def cuda_of_the_build():
    """The same of CUDA, and where it lies."""
    known = cached("SHW_CUDA_LEFT_OUT|SHW_WITH_CUDA|SHW_CUDA_WHEELS")
    chosen = "OFF" if known.get("SHW_CUDA_LEFT_OUT") == "TRUE" else known.get("SHW_WITH_CUDA", "AUTO")
    return {"SHW_WITH_CUDA": chosen, "SHW_CUDA_WHEELS": known.get("SHW_CUDA_WHEELS", "")}


def compile_commands(tree):
    """Source -> command by which the tree compiles it, both without the folders that they are in."""
    def plain(text):
        return text.replace(str(tree), "TREE").replace(str(SOURCE), "SOURCE")
    return {plain(each["file"]): plain(each["command"]) for each in json.loads((tree / "compile_commands.json").read_text())
            if " -o tests/" not in each["command"]}


@pytest.fixture(scope="module")
def wheel_tree():
    """Build tree of the wheel. The compiler cache knows the objects of the build tree by paths relative to it, so this one
    lies beside it: there the same paths lead to the same sources."""
    tree = BUILD.with_name(BUILD.name + "-wheel")
    shutil.rmtree(tree, ignore_errors=True)
    yield tree
    shutil.rmtree(tree, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(wheel_tree, tmp_path_factory):
    """The wheel, built with the tools that .venv already holds, and with the compilers and flags of the build tree: what
    was compiled for it comes out of the compiler cache."""
    folder = tmp_path_factory.mktemp("wheel")
    presets = json.loads((SOURCE / "CMakePresets.json").read_text())["configurePresets"]
    flags = next(preset for preset in presets if preset["name"] == "dev")["cacheVariables"]
    flags |= compilers() | {"SHW_UNITY": "OFF", "SHW_WARNINGS_AS_ERRORS": "ON", "SHW_BUILD_TORCH": torch_of_the_build()}
    flags |= cuda_of_the_build()
    settings = [f"--config-settings=cmake.define.{name}={value}" for name, value in flags.items() if name != "CMAKE_BUILD_TYPE"]
    run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet", "-w", folder,
        f"--config-settings=cmake.build-type={flags['CMAKE_BUILD_TYPE']}", f"--config-settings=build-dir={wheel_tree}", *settings, SOURCE,
        env=clean_environment())
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Interpreter of a fresh environment that holds nothing but the wheel."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    base = shutil.which("python3", path="/usr/bin") or sys.executable
    run(base, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    return folder / "bin" / "python"


def test_the_wheel_is_abi3_for_python_3_11(wheel):
    assert wheel.name.startswith(f"shardwright-{VERSION}-cp311-abi3-")


def test_what_the_build_tree_compiled_is_not_compiled_again(wheel, wheel_tree):
    for_wheel, for_build = compile_commands(wheel_tree), compile_commands(BUILD)
    assert len(for_wheel) > 100
    assert [source for source, command in for_wheel.items() if command != for_build.get(source)] == []


def test_the_wheel_holds_modules_library_stubs_and_no_sources(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert sorted(name for name in names if name.endswith(".abi3.so")) == [
        "shardwright/_native/_shw_native.abi3.so", "shardwright/torch/_native/_shw_torch.abi3.so"]
    assert any(name.endswith("libshardwright.so.0") for name in names)
    assert "shardwright/py.typed" in names
    # Plugins are there where the build had what they are for, each with its description.
    for plugin in ("torch", "cuda"):
        is_built = (BUILD / "lib" / f"{plugin}.shw-plugin.json").exists()
        found = [name for name in names if f"_native/{plugin}.shw-plugin.json" in name or f"libshardwright_{plugin}.so" in name]
        assert len(found) == (2 if is_built else 0), found
    assert not [name for name in names if name.endswith((".cc", ".h", ".i", ".c"))]


def test_a_checkpoint_can_be_written_and_read_without_numpy(python, tmp_path):
    program = """
import importlib.util, sys
assert importlib.util.find_spec("numpy") is None
import array
import shardwright
state = {"weights": array.array("f", range(64)), "step": 3}
shardwright.save(state, "checkpoint")
with shardwright.open("checkpoint") as checkpoint:
    assert "weights" in checkpoint.keys()
    digest = checkpoint.digest()
state["weights"][:] = array.array("f", [0.0] * 64)
shardwright.load("checkpoint", into=state)
assert list(state["weights"]) == [float(value) for value in range(64)]
print(shardwright.__version__)
"""
    assert VERSION in run(python, "-c", program, env=clean_environment(), cwd=tmp_path)


def test_the_command_line_comes_with_the_wheel(python, tmp_path):
    environment = clean_environment()
    assert VERSION in run(python.parent / "shardwright", "version", env=environment, cwd=tmp_path)
    assert VERSION in run(python, "-m", "shardwright", "version", env=environment, cwd=tmp_path)
