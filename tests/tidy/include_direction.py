# SPDX-License-Identifier: Apache-2.0
"""Includes go one way: a folder of core/ includes only folders to its left, so does a folder of core/plan/ inside it,
capi/ stands to the right of all of them, and cli/, bindings/ and examples/ see include/ only. Private headers stay in
their folder; third-party headers stay in the folder that owns them.
"""

from __future__ import annotations

import re

from source_tree import CPP_SUFFIXES, Finding, SourceTree

# Pipeline order. The steps of one tuple may not include each other either, apart from what stands further left.
ORDER = ("base", "concurrency", "tensor", "layout", "state", "integrity", "plan", "job_description", "estimate",
         "storage", "format", "node", "collective", "device", "exec", "reshard", "hsdp")
# The same inside core/plan; its own files, here "", are values and checks of values.
PLAN_ORDER = ("grid", "", "cover", "search", "wire", "describe", "save", "load")
# Jobs that are described from outside: nothing that plans, saves or loads knows of them.
_DESCRIBED = {"job_description", "estimate"}
# Folders that are pure functions of what they are given.
FORBIDDEN_FOR = {
    "plan": {"concurrency", "storage", "collective", "exec"},
    "job_description": {"concurrency", "integrity"},
    "estimate": {"concurrency"},
    "storage": {"plan", "format", *_DESCRIBED},
    "format": _DESCRIBED,
    "collective": {"plan", "storage", "format", *_DESCRIBED},
    "device": {"plan", "storage", "format", "collective", *_DESCRIBED},
    "node": {"concurrency", "plan", "storage", "format", *_DESCRIBED},
    "exec": _DESCRIBED,
    "reshard": _DESCRIBED,
    "hsdp": {"plan", "storage", "format", "node", "exec", "reshard", *_DESCRIBED},
}
HOST_SIDE = ("cli", "bindings", "examples")
OWNED_HEADERS = {
    "flatbuffers/": ("core/plan/wire/", "core/format/native/"),
    "mbedtls/": ("core/integrity/",),
    "libdeflate.h": ("core/integrity/",),
    "zstd.h": ("core/format/archive/", "tests/core/format/"),
    "zstd_errors.h": ("core/format/archive/",),
    "xxhash.h": ("core/base/hash_index.cc", "core/integrity/", "core/plan/"),
    # What copies tensors asks their device; what gathers stored bytes has none, nor has one element that a header
    # says, and units lie in host memory.
    "core/tensor/strided_copy.h": ("core/tensor/", "core/device/", "core/format/derived_items.cc", "core/hsdp/"),
    "core/tensor/stream_copy.h": ("core/tensor/", "core/device/"),
    "core/tensor/cast.h": ("core/tensor/", "core/device/", "core/format/zarr/fill_value.cc", "core/hsdp/", "core/reshard/"),
    "torch/": ("bindings/libtorch/", "core/collective/c10d/"),
    "c10/": ("bindings/libtorch/", "core/collective/c10d/"),
    "ATen/": ("bindings/libtorch/", "core/collective/c10d/"),
    "cuda_runtime.h": ("core/base/cuda/", "core/device/cuda/", "core/collective/nccl/"),
    "cuda_runtime_api.h": ("core/base/cuda/", "core/device/cuda/", "core/collective/nccl/"),
    "nccl.h": ("core/collective/nccl/",),
    "mpi.h": ("core/collective/mpi/",),
    "CLI/": ("cli/",),
    "jni.h": ("bindings/java/", "bindings/swig/"),
}
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def folder_of(path: str) -> str | None:
    """Name of the folder of core/ that holds the path."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "core" else None


def _check_core(path: str, included: str) -> str | None:
    own = folder_of(path)
    other = folder_of(included)
    if included.startswith(("capi/", "include/", "shardwright/", "bindings/", "cli/")):
        return f"core may not include {included}"
    if own is None or other is None or own == other:
        return None
    if own not in ORDER or other not in ORDER:
        return f"folder {own if own not in ORDER else other} is not in the pipeline order"
    if ORDER.index(other) > ORDER.index(own):
        return f"{own} stands to the left of {other} and may not include {included}"
    if other in FORBIDDEN_FOR.get(own, ()):
        return f"{own} does not use {other}, so it may not include {included}"
    return None


def plan_step(path: str) -> str | None:
    """Name of the folder of core/plan/ that holds the path, "" for a file of core/plan/ itself."""
    parts = path.split("/")
    return None if parts[:2] != ["core", "plan"] else parts[2] if len(parts) > 3 else ""


def _check_plan(path: str, included: str) -> str | None:
    own = plan_step(path)
    other = plan_step(included)
    if own is None or other is None:
        return None
    if own not in PLAN_ORDER or other not in PLAN_ORDER:
        return f"folder plan/{own if own not in PLAN_ORDER else other} is not in the order of core/plan"
    if PLAN_ORDER.index(other) > PLAN_ORDER.index(own):
        return f"plan/{own} stands to the left of plan/{other} and may not include {included}"
    return None


def _check_backends(path: str, included: str) -> str | None:
    """format/ and storage/ never know each other's children."""
    own = folder_of(path)
    other = folder_of(included)
    if own != other and other in ("storage", "format") and own in ("storage", "format"):
        if len(included.split("/")) > 3:
            return f"{own} knows the interface of {other} only, not {included}"
    return None


def _check_private(path: str, included: str) -> str | None:
    if not included.endswith("_internal.h"):
        return None
    if included.startswith("core/"):
        inside = f"core/{folder_of(included)}/"
        if path.startswith((inside, "tests/", "benchmarks/")):
            return None
        return f"{included} is private to {inside}"
    return None


def _check_host_side(path: str, included: str) -> str | None:
    if included.startswith(("core/", "capi/")):
        return f"{path.split('/')[0]}/ sees include/ only, not {included}"
    return None


def _check_owner(path: str, included: str) -> str | None:
    if not path.startswith(("core/", "capi/", "cli/", "bindings/")):
        return None
    for header, owners in OWNED_HEADERS.items():
        matches = included.startswith(header) if header.endswith("/") else included == header
        matches |= header == "flatbuffers/" and included.endswith("_generated.h")
        if matches and not path.startswith(owners):
            return f"{included} may be included only below {', '.join(owners)}"
    return None


def check(tree: SourceTree) -> list[Finding]:
    findings = []
    for path in tree.paths(*CPP_SUFFIXES):
        text = tree.text(path)
        for match in _INCLUDE.finditer(text):
            included = match[2]
            reasons = [_check_private(path, included), _check_owner(path, included)]
            if path.startswith("core/"):
                reasons += [_check_core(path, included), _check_plan(path, included), _check_backends(path, included)]
            elif path.startswith(tuple(f"{folder}/" for folder in HOST_SIDE)):
                reasons.append(_check_host_side(path, included))
            elif path.startswith("include/") and match[1] == '"' and "/" in included:
                reasons.append(f"public headers include their neighbours by plain name, not {included}")
            line = text.count("\n", 0, match.start(2)) + 1
            findings += [Finding(path, line, "include-direction", reason) for reason in reasons if reason]
    return findings
