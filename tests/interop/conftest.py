# SPDX-License-Identifier: Apache-2.0
"""Tests of this folder need torch."""
import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
