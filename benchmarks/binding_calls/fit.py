# SPDX-License-Identifier: Apache-2.0
"""Least squares through (count, seconds): nanoseconds per tensor and microseconds per call, in Python and in C."""
import ctypes
import os
import time


class CHost:
    """States of some counts made by C code in this process: create, one shw_state_add_tensors, release."""

    def __init__(self, params):
        build = params["build"]
        self.library = ctypes.CDLL(os.path.join(build, "lib", "bench_c_state.so"))
        self.library.bench_describe.restype = ctypes.c_void_p
        self.library.bench_state.restype = ctypes.c_double
        if self.library.bench_open(os.path.join(build, "lib", "libshardwright.so.0").encode()):
            raise RuntimeError("the C host cannot open the library")
        describe = self.library.bench_describe
        self.batches = [ctypes.c_void_p(describe(ctypes.c_uint64(n))) for n in params["counts"]]

    def seconds(self, index):
        """CPU seconds as C measures them: the way through ctypes is not in them."""
        seconds = self.library.bench_state(self.batches[index])
        if seconds < 0:
            raise RuntimeError("the C host cannot make a state")
        return seconds


def python_seconds(make, source):
    start = time.process_time()
    make(source)
    return time.process_time() - start


def line_through(counts, seconds):
    n = len(counts)
    mean_x, mean_y = sum(counts) / n, sum(seconds) / n
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(counts, seconds)) / sum((x - mean_x) ** 2 for x in counts)
    return {"ns_per_tensor": slope * 1e9, "us_per_call": (mean_y - slope * mean_x) * 1e6}


def measured_in_c(params, host):
    counts = params["counts"]
    return line_through(counts, [min(host.seconds(i) for _ in range(params["turns"])) for i in range(len(counts))])


def measured(params, host, make, sources):
    """The whole of make(source), one source per count, and its part above the C host.

    Call by call the two take turns, so that a neighbour who slows one slows the other; the least of each counts.
    """
    python, in_c = [], []
    for i, source in enumerate(sources):
        turns = [(python_seconds(make, source), host.seconds(i)) for _ in range(params["turns"])]
        python.append(min(p for p, _ in turns))
        in_c.append(min(c for _, c in turns))
    whole, c = line_through(params["counts"], python), line_through(params["counts"], in_c)
    return whole | {"c_ns_per_tensor": c["ns_per_tensor"],
                    "binding_ns_per_tensor": whole["ns_per_tensor"] - c["ns_per_tensor"]}
