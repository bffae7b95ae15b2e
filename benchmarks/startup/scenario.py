# SPDX-License-Identifier: Apache-2.0
"""Time from dlopen to a usable context in a fresh process, and the size and dependencies of the core library."""


def variants(quick):
    line = {"check": "context made, dependencies as promised"}
    return [{"name": "dlopen + context", "op": "startup", "params": {}, "line": line, "reps": 5 if quick else 20,
             "contenders": ["shardwright"]}]
