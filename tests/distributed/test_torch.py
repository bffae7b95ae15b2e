# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch over real Gloo processes. Starting processes is what costs, so one launch per world size
and collective runs all."""
import importlib.util

import cases_of
import pytest
import ranks

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")
# Of the plugin libshardwright_torch.so, its stand-in in Python, and what ranks of one machine use by themselves: its memory.
COLLECTIVES = ("c10d", "python", "auto")
# Planners do not care; whole trainers take what users get; transports are looked at one by one.
ONLY_WITH = {"planner_cases.py": ["c10d"], "dcp_state_cases.py": ["auto"],
             "dcp_public_cases.py": ["auto"], "hsdp_cases.py": ["auto", "c10d"], "hsdp_option_cases.py": ["auto"],
             "hsdp_script_cases.py": ["auto"], "hsdp_matrix_cases.py": ["auto"], "hsdp_checkpoint_cases.py": ["auto"],
             "hsdp_mesh_cases.py": ["auto"], "hsdp_ragged_cases.py": ["auto"], "hsdp_dtensor_cases.py": ["auto"],
             "hsdp_device_cases.py": ["auto"],
             "dtensor_cases.py": ["auto"],
             "collective_cases.py": ["c10d", "python"]}
CASES = [(collective, size, case) for collective in COLLECTIVES for size, case, file in cases_of.ALL
         if collective in ONLY_WITH.get(file, COLLECTIVES)]
_launched = {}


def launched(collective, world_size, tmp_path_factory):
    key = collective, world_size
    if key not in _launched:
        only = [case for with_, size, case in CASES if (with_, size) == key]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SHW_TORCH_COLLECTIVE", collective)
            _launched[key] = ranks.launch(world_size, tmp_path_factory.mktemp(f"{collective}{world_size}_"), *only)
    return _launched[key]


@pytest.mark.parametrize(("collective", "world_size", "case"), CASES, ids=lambda value: str(value))
def test_case(collective, world_size, case, tmp_path_factory):
    outcomes, errors = launched(collective, world_size, tmp_path_factory)
    assert outcomes.get(case) == ["ok"] * world_size, "\n".join([*map(str, outcomes.get(case, ["it did not run"])), *errors])


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("world_size", [2, 4])
def test_processes_end_by_themselves(collective, world_size, tmp_path_factory):
    assert launched(collective, world_size, tmp_path_factory)[1] == []
