# SPDX-License-Identifier: Apache-2.0
"""The cases of reuse_cases.py with one, two and four Gloo processes, a launch each."""
import launch
import originals
import pytest

WORLD_SIZES = (1, 2, 4)


@pytest.fixture(scope="module", params=WORLD_SIZES)
def launched(request, tmp_path_factory):
    """(number of ranks, what they said)."""
    if not originals.is_installed():
        pytest.skip("megatron-core is not installed")
    return request.param, launch.run("reuse_cases", request.param, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", launch.case_names("reuse_cases"))
def test_case(case, launched):
    launch.check(case, *launched)


def test_processes_end_by_themselves(launched):
    assert launched[1][1] == []
