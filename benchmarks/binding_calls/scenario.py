# SPDX-License-Identifier: Apache-2.0
"""What one call costs in C, and what one tensor costs when a state is built in Python from flat arrays, a dict of numpy
arrays or a dict of torch tensors: a linear fit over the number of tensors. Nothing is written.
"""


def variants(quick):
    counts = [1000, 4000, 10000] if quick else [1000, 10000, 50000, 100000]
    result = [{"name": "C call", "op": "call", "params": {}, "line": {"check": "result of the call"}, "reps": 5,
               "contenders": ["c_call"]}]
    for name in ("flat_arrays", "numpy_dict", "torch_dict"):
        line = {"tensors": counts[-1], "check": "names and bytes of the state"}
        result.append({"name": name, "op": "state", "params": {"counts": counts}, "line": line,
                       "reps": 3 if quick else 5, "contenders": [name]})
    return result
