# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch over real Gloo processes. Starting processes is what costs, so one launch per world size runs all."""
import importlib.util

import cases_of
import pytest
import ranks

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")
_launched = {}


def launched(world_size, tmp_path_factory):
    if world_size not in _launched:
        _launched[world_size] = ranks.launch(world_size, tmp_path_factory.mktemp(f"ranks{world_size}"))
    return _launched[world_size]


@pytest.mark.parametrize(("world_size", "case"), cases_of.ALL, ids=lambda value: str(value))
def test_case(world_size, case, tmp_path_factory):
    outcomes, errors = launched(world_size, tmp_path_factory)
    assert outcomes.get(case) == ["ok"] * world_size, "\n".join([*map(str, outcomes.get(case, ["it did not run"])), *errors])


@pytest.mark.parametrize("world_size", [2, 4])
def test_processes_end_by_themselves(world_size, tmp_path_factory):
    assert launched(world_size, tmp_path_factory)[1] == []
