# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of a whole save and a whole load of 1 GiB, with the default staging budget and with a small one.

The bar: the peak is at most state + budget + 5 % of the state. added_bytes is the peak during the call less what the
process held before it (the state, touched, and the interpreter); allowed_bytes is budget + 5 %; share_of_allowed is
their ratio. Each call runs in a fresh process and the system's mark of the peak is reset just before it. The times are
those of the call alone; reading the state's file is not cold here.
"""
SIZE = 1 << 30
TENSORS = 100
DEFAULT_MIB = 256
SMALL_MIB = 16


def variants(quick):
    line = {"bytes": SIZE, "tensors": TENSORS, "check": "peak within state + budget + 5 %"}
    return [{"name": f"{mib} MiB budget", "op": op, "line": line, "reps": 1 if quick else 5,
             "params": {"bytes": SIZE, "tensors": TENSORS, "op": op, "budget": mib << 20},
             "contenders": ["shardwright"]} for mib in (DEFAULT_MIB, SMALL_MIB) for op in ("save", "load")]
