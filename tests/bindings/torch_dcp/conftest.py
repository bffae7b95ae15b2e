# SPDX-License-Identifier: Apache-2.0
"""Tests of this folder need torch, and start without what earlier ones left in the plan cache."""
import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def empty_plan_cache():
    from shardwright.torch.dcp.planner import _cache
    _cache.forget()
    yield
    _cache.forget()
