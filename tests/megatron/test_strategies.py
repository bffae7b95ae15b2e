# SPDX-License-Identifier: Apache-2.0
"""The cases of strategy_cases.py over two Gloo processes, in one launch."""
import launch
import originals
import pytest


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Case to what each rank said, and what the processes said at their end."""
    if not originals.is_installed():
        pytest.skip("megatron-core is not installed")
    return launch.run("strategy_cases", 2, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", launch.case_names("strategy_cases"))
def test_case(case, outcomes):
    launch.check(case, 2, outcomes)


def test_processes_end_by_themselves(outcomes):
    assert outcomes[1] == []
