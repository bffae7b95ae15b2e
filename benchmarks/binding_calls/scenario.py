# SPDX-License-Identifier: Apache-2.0
"""What one call costs in C, and what one tensor costs when a state is made: in C, and in Python from flat arrays, a
dict of numpy arrays or a dict of torch tensors. Nothing is written.

All figures per tensor are slopes of a linear fit over the number of tensors; times are CPU seconds, the least of 40
calls (12 when QUICK). ns_per_tensor is the whole call. In turns with it, in the same process, C code makes states of as
many tensors (c_ns_per_tensor: create, one shw_state_add_tensors of arrays made before, release). binding_ns_per_tensor
is the difference: what Python and the extension add, the filling of the descriptors for the C call included.
"""


def variants(quick):
    counts = [1000, 10000, 100000] if quick else [1000, 10000, 40000, 100000]
    params = {"counts": counts, "turns": 12 if quick else 40}
    result = [{"name": "C call", "op": "call", "params": {}, "line": {"check": "result of the call"}, "reps": 5,
               "contenders": ["c_call"]}]
    line = {"tensors": counts[-1], "check": "names of the state"}
    result.append({"name": "states", "op": "state", "params": params, "line": line,
                   "reps": 3 if quick else 7, "contenders": ["c_state", "flat_arrays", "numpy_dict", "torch_dict"]})
    return result
