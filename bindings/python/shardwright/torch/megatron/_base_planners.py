# SPDX-License-Identifier: Apache-2.0
"""The planners that Megatron's are made of."""
from ..dcp.planner import DefaultLoadPlanner, DefaultSavePlanner

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]
