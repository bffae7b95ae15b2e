# SPDX-License-Identifier: Apache-2.0
"""World sizes, names and files of the cases, read from the text of the files that hold them, so that listing needs no torch."""
import ast
from pathlib import Path

FILES = ("cases.py", "planner_cases.py", "collective_cases.py", "dcp_cases.py", "dcp_file_cases.py",
         "dcp_state_cases.py", "dcp_public_cases.py", "hsdp_cases.py", "hsdp_option_cases.py",
         "hsdp_script_cases.py", "hsdp_checkpoint_cases.py", "hsdp_matrix_cases.py", "hsdp_mesh_cases.py",
         "hsdp_ragged_cases.py", "hsdp_dtensor_cases.py", "hsdp_device_cases.py", "dtensor_cases.py")


def _sizes(function):
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "ranks":
            return [argument.value for argument in decorator.args]
    return []


def _read():
    trees = {name: ast.parse(Path(__file__).with_name(name).read_text(encoding="ascii")) for name in FILES}
    found = [(size, f.name, name) for name, tree in trees.items() for f in tree.body if isinstance(f, ast.FunctionDef)
             for size in _sizes(f)]
    return sorted(found, key=lambda row: row[0])


ALL = _read()
