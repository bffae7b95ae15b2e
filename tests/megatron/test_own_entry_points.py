# SPDX-License-Identifier: Apache-2.0
"""The cases of modules over two or four Gloo processes, which cannot import megatron-core."""
import launch
import pytest

MODULES = {"own_cases": 2, "strict_cases": 2, "parallel_cases": 4, "quantised_cases": 2}


@pytest.fixture(scope="module")
def outcomes_of(tmp_path_factory):
    """By file: case to what each rank said, and what the processes said at their end."""
    found = {}

    def of(module):
        if module not in found:
            found[module] = launch.run(module, MODULES[module], tmp_path_factory.mktemp(module))
        return found[module]

    return of


@pytest.mark.parametrize(("module", "case"), [(module, case) for module in MODULES for case in launch.case_names(module)])
def test_case(module, case, outcomes_of):
    launch.check(case, MODULES[module], outcomes_of(module))


@pytest.mark.parametrize("module", MODULES)
def test_processes_end_by_themselves(module, outcomes_of):
    assert outcomes_of(module)[1] == []
