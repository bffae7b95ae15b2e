# SPDX-License-Identifier: Apache-2.0
"""Least squares through (count, seconds): nanoseconds per tensor and microseconds per call."""
import time


def best_seconds(function, repeats=5):
    """The quickest of a few calls: what the work costs without the neighbours' noise."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def fit(points):
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return {"ns_per_tensor": slope * 1e9, "us_per_call": (mean_y - slope * mean_x) * 1e6}
