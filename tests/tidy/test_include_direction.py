# SPDX-License-Identifier: Apache-2.0
"""The include check knows left from right."""

import include_direction
import pytest
from source_tree import SourceTree


def found(path, include):
    return [finding.text for finding in include_direction.check(SourceTree.of_texts({path: f"#include {include}\n"}))]


@pytest.mark.parametrize(("path", "include"), [
    ("core/base/a.h", '"core/plan/catalog.h"'),
    ("core/plan/a.cc", '"core/storage/storage.h"'),
    ("core/plan/a.cc", '"core/concurrency/thread_pool.h"'),
    ("core/exec/a.cc", '"capi/context_c.h"'),
    ("core/exec/a.cc", '"shardwright/base.h"'),
    ("core/format/native/a.cc", '"core/storage/posix/posix_storage.h"'),
    ("core/exec/a.cc", '"core/plan/save/merge_internal.h"'),
    ("core/exec/a.cc", "<flatbuffers/flatbuffers.h>"),
    ("core/plan/catalog.h", '"core/plan/describe/replica_digests.h"'),
    ("core/plan/search/a.cc", '"core/plan/load/catalog_index.h"'),
    ("core/plan/grid/a.cc", '"core/plan/catalog.h"'),
    ("core/plan/wire/a.cc", '"core/plan/describe/gather_descriptions.h"'),
    ("core/plan/save/a.cc", '"core/plan/load/catalog_index.h"'),
    ("core/plan/unheard_of/a.cc", '"core/plan/catalog.h"'),
    ("core/plan/describe/a.cc", '"core/plan/unheard_of/a.h"'),
    ("core/plan/save/a.cc", '"core/job_description/job_description.h"'),
    ("core/plan/describe/a.cc", '"core/estimate/estimate.h"'),
    ("core/job_description/a.cc", '"core/estimate/estimate.h"'),
    ("core/exec/a.cc", '"core/estimate/estimate.h"'),
    ("core/estimate/a.cc", '"core/plan/save/merge_internal.h"'),
    ("core/exec/a.cc", '"core/tensor/strided_copy.h"'),
    ("core/exec/a.cc", '"core/tensor/cast.h"'),
    ("core/device/a.h", '"core/exec/runtime.h"'),
    ("core/device/a.h", '"core/storage/storage.h"'),
    ("core/device/a.h", '"core/collective/communicator.h"'),
    ("core/device/a.h", '"core/hsdp/runtime.h"'),
    ("core/hsdp/a.h", '"core/plan/catalog.h"'),
    ("core/hsdp/a.h", '"core/storage/storage.h"'),
    ("core/hsdp/a.h", '"core/exec/save.h"'),
    ("core/exec/a.h", '"core/hsdp/runtime.h"'),
    ("core/plan/describe/a.cc", "<flatbuffers/flatbuffers.h>"),
    ("core/plan/describe/a.cc", '"core/plan/wire/plan_generated.h"'),
    ("cli/main.cc", '"core/base/status.h"'),
    ("bindings/java/jni.cc", '"capi/handles.h"'),
    ("include/shardwright/a.h", '"core/base/status.h"'),
    ("core/unheard_of/a.cc", '"core/base/status.h"'),
])
def test_a_forbidden_include_is_found(path, include):
    assert found(path, include)


@pytest.mark.parametrize(("path", "include"), [
    ("core/plan/a.cc", '"core/layout/box.h"'),
    ("core/plan/save/a.cc", '"core/plan/save/merge_internal.h"'),
    ("core/plan/catalog.cc", '"core/plan/digest.h"'),
    ("core/plan/catalog.h", '"core/plan/grid/dim_split.h"'),
    ("core/plan/load/a.cc", '"core/plan/describe/describe_boxes.h"'),
    ("core/plan/describe/a.cc", '"core/plan/cover/cover_internal.h"'),
    ("core/job_description/a.cc", '"core/plan/describe/builder.h"'),
    ("core/estimate/a.cc", '"core/job_description/job_description.h"'),
    ("core/exec/a.cc", '"core/storage/storage.h"'),
    ("core/exec/a.cc", '"core/device/device.h"'),
    ("core/device/host/a.cc", '"core/tensor/strided_copy.h"'),
    ("core/device/host/a.cc", '"core/concurrency/thread_pool.h"'),
    ("core/hsdp/a.cc", '"core/collective/communicator.h"'),
    ("core/hsdp/a.cc", '"core/device/lane_device.h"'),
    ("core/format/native/a.cc", '"core/storage/storage.h"'),
    ("core/plan/wire/a.cc", "<flatbuffers/flatbuffers.h>"),
    ("capi/a_c.cc", '"core/exec/save.h"'),
    ("cli/main.cc", '"shardwright/shardwright.h"'),
    ("include/shardwright/a.h", '"base.h"'),
    ("tests/core/plan/a_test.cc", '"core/plan/save/merge_internal.h"'),
])
def test_an_allowed_include_passes(path, include):
    assert not found(path, include)
