# SPDX-License-Identifier: Apache-2.0
"""Names and world sizes of the cases, read from the text of cases.py, so that listing them needs no torch."""
import ast
from pathlib import Path


def _sizes(function):
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "ranks":
            return [argument.value for argument in decorator.args]
    return []


def _read():
    tree = ast.parse(Path(__file__).with_name("cases.py").read_text(encoding="ascii"))
    found = [(size, f.name) for f in tree.body if isinstance(f, ast.FunctionDef) for size in _sizes(f)]
    return sorted(found, key=lambda row: row[0])


ALL = _read()
