# SPDX-License-Identifier: Apache-2.0
"""The cases of these files over two Gloo processes, one launch for each of the files."""
import launch
import originals
import pytest

MODULES = ("rank_cases", "strategy_cases", "queue_cases", "interop_cases")


@pytest.fixture(scope="module")
def outcomes_of(tmp_path_factory):
    """By file: case to what each rank said, and what the processes said at their end."""
    if not originals.is_installed():
        pytest.skip("megatron-core is not installed")
    found = {}

    def of(module):
        if module not in found:
            found[module] = launch.run(module, 2, tmp_path_factory.mktemp(module))
        return found[module]

    return of


@pytest.mark.parametrize(("module", "case"), [(module, case) for module in MODULES for case in launch.case_names(module)])
def test_case(module, case, outcomes_of):
    launch.check(case, 2, outcomes_of(module))


@pytest.mark.parametrize("module", MODULES)
def test_processes_end_by_themselves(module, outcomes_of):
    assert outcomes_of(module)[1] == []
