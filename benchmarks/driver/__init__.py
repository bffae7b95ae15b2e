# SPDX-License-Identifier: Apache-2.0
"""Benchmark driver: rounds, floors, workers and the one-line-per-measurement output."""
