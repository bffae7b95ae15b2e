# SPDX-License-Identifier: Apache-2.0
"""The installed tree serves find_package, pkg-config and the command line after it was moved, in a path with a space."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(os.environ["SHW_SOURCE_DIR"])
BUILD = Path(os.environ["SHW_BUILD_DIR"])
CONSUMER = SOURCE / "tests" / "install" / "consumer"
VERSION = (SOURCE / "VERSION").read_text().strip()


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installed tree that no longer lies where it was installed to."""
    first = tmp_path_factory.mktemp("install") / "first place"
    run("cmake", "--install", BUILD, "--prefix", first)
    moved = first.parent / "second place"
    shutil.move(first, moved)
    assert not first.exists()
    return moved


def library_folder(prefix):
    return next(prefix.glob("lib/**/libshardwright.so.0")).parent


def test_the_library_names_no_folder_of_the_build(prefix):
    dynamic = run("readelf", "-d", library_folder(prefix) / "libshardwright.so.0")
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
    assert "Library soname: [libshardwright.so.0]" in dynamic


def test_package_files_name_no_absolute_path(prefix):
    for path in [*prefix.rglob("*.pc"), *prefix.rglob("*.cmake")]:
        for folder in (str(SOURCE), str(BUILD), str(prefix), "first place"):
            assert folder not in path.read_text(), path


def test_headers_for_hosts_of_libtorch_are_there(prefix):
    headers = {path.name for path in (prefix / "include" / "shardwright" / "torch").iterdir()}
    assert headers == {"autograd.hpp", "handles.hpp", "hsdp.hpp", "training.hpp", "unit.hpp"}


def test_find_package_builds_and_runs_c_and_cxx(prefix, tmp_path):
    run("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "consumer_c").strip().startswith(VERSION)
    assert run(tmp_path / "build" / "consumer_cxx").strip().startswith(VERSION)


def test_find_package_refuses_a_version_that_is_not_there(prefix, tmp_path):
    project = tmp_path / "newer"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(newer C)\nfind_package(shardwright 99.0 REQUIRED)\n")
    done = subprocess.run(["cmake", "-S", project, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "99.0" in done.stderr


def test_pkg_config_builds_and_runs_c(prefix, tmp_path):
    # pkg-config writes spaces escaped for a shell, so the flags pass through one, as they would in a Makefile.
    environment = dict(os.environ, PKG_CONFIG_PATH=str(library_folder(prefix) / "pkgconfig"),
                       LD_LIBRARY_PATH=str(library_folder(prefix)))
    program = tmp_path / "consumer"
    run("sh", "-c", f'eval "cc -std=c11 \\"{CONSUMER}/consumer.c\\" -o \\"{program}\\" '
        '$(pkg-config --cflags --libs shardwright)"', env=environment)
    assert run(program, env=environment).strip().startswith(VERSION)
    assert run("pkg-config", "--modversion", "shardwright", env=environment).strip() == VERSION


def test_the_command_line_finds_its_library(prefix):
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    assert VERSION in run(prefix / "bin" / "shardwright", "version", env=environment)


def test_all_missing_packages_are_named_at_once(tmp_path):
    cache = (BUILD / "CMakeCache.txt").read_text()
    known = [f"-D{name}={re.search(rf'^{name}:[A-Z]+=(.+)$', cache, re.M)[1]}"
             for name in ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_MAKE_PROGRAM")]
    nowhere = [f"-DCMAKE_FIND_USE_{kind}=OFF" for kind in ("CMAKE_SYSTEM_PATH", "SYSTEM_ENVIRONMENT_PATH")]
    done = subprocess.run(["cmake", "-G", "Ninja", "-S", SOURCE, "-B", tmp_path, f"-DSHW_VENV={tmp_path}", *known, *nowhere],
                          capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    for package in ("libfmt-dev", "libxxhash-dev", "nlohmann-json3-dev", "libmbedtls-dev", "libdeflate-dev",
                    "libzstd-dev", "flatc", "`make` installs"):
        assert package in said, said
