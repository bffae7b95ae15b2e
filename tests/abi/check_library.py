#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gates on the binary; one per sub-command, each prints its findings and fails on any.

  symbols LIBRARY              exported names = capi/symbols.txt = functions of the headers
  needed LIBRARY GOLDEN        libraries that the dynamic loader must find = the golden list
  plugin LIBRARY               exported names = the entry of a plugin; no path of the machine that built it
  table                        slots of the released function table are a prefix of today's
  layout COMPILER GOLDEN       sizes, offsets and constants = the golden text
  layout-update COMPILER GOLDEN  writes the golden text
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import public_headers as headers

SYMBOLS = headers.ROOT / "capi" / "symbols.txt"
TABLE = pathlib.Path(__file__).resolve().parent / "golden" / "table-0.1.txt"


def output_of(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def listed_symbols():
    return [line.split()[0] for line in SYMBOLS.read_text(encoding="ascii").splitlines()
            if line and not line.startswith("#")]


def compare(left, right, left_name, right_name):
    findings = [f"{name}: in {left_name} only" for name in sorted(set(left) - set(right))]
    return findings + [f"{name}: in {right_name} only" for name in sorted(set(right) - set(left))]


def check_symbols(arguments):
    exported = []
    for line in output_of("nm", "-D", "--defined-only", arguments.library).splitlines():
        name, kind = line.split()[-1], line.split()[-2]
        if kind != "A":  # the version nodes
            exported.append(name.split("@")[0])
    findings = [f"{name}: exported twice" for name in set(exported) if exported.count(name) > 1]
    declared = [function.name for function in headers.functions()]
    findings += [f"{name}: declared twice" for name in set(declared) if declared.count(name) > 1]
    findings += compare(exported, listed_symbols(), "the library", "symbols.txt")
    return findings + compare(declared, listed_symbols(), "the headers", "symbols.txt")


def check_needed(arguments):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", arguments.library))
    allowed = [line for line in pathlib.Path(arguments.golden).read_text().splitlines()
               if line and not line.startswith("#")]
    return [f"{name}: needed but not in {arguments.golden}" for name in needed if name not in allowed]


def check_plugin(arguments):
    exported = [line.split()[-1] for line in output_of("nm", "-D", "--defined-only", arguments.library).splitlines()]
    findings = compare(exported, ["shw_plugin_v1"], "the plugin", "what a plugin exports")
    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", output_of("readelf", "-dW", arguments.library))
    return findings + [f"it is told to look into {path}" for path in paths]


def check_table(_):
    slots = re.findall(r"\(\*(\w+)\)\(", headers.text_of("api"))
    released = TABLE.read_text(encoding="ascii").split()
    if slots[: len(released)] != released:
        return ["the released slots of shw_api are no prefix of today's: slots are only appended"]
    return []


def probe_source():
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <shardwright/shardwright.h>",
             "#define FIELD(s, f) printf(\"  %4zu %3zu %s\\n\", offsetof(s, f), sizeof(((s*)0)->f), #f)",
             "#define VALUE(c) printf(\"%s = %lld\\n\", #c, (long long)(c))",
             "struct align { char c; shw_tensor t; };", "int main(void) {"]
    for name, fields in headers.structs():
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        lines += [f"  FIELD({name}, {field});" for field in fields]
    lines += [f"  VALUE({name});" for name in headers.constants()]
    return "\n".join(lines + ["  return 0;", "}", ""])


def layout_text(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "probe.c"
        source.write_text(probe_source())
        program = str(source.with_suffix(""))
        subprocess.run([compiler, "-std=c11", f"-I{headers.INCLUDE}", str(source), "-o", program], check=True)
        return output_of(program)


def check_layout(arguments):
    golden = pathlib.Path(arguments.golden).read_text(encoding="ascii").splitlines()
    found = layout_text(arguments.compiler).splitlines()
    if golden == found:
        return []
    return [f"layout differs from {arguments.golden}:",
            *(f"  golden: {line}" for line in golden if line not in found),
            *(f"  today:  {line}" for line in found if line not in golden)]


def update_layout(arguments):
    pathlib.Path(arguments.golden).write_text(layout_text(arguments.compiler), encoding="ascii")
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("symbols").add_argument("library")
    needed = commands.add_parser("needed")
    needed.add_argument("library")
    needed.add_argument("golden")
    commands.add_parser("plugin").add_argument("library")
    commands.add_parser("table")
    for name in ("layout", "layout-update"):
        layout = commands.add_parser(name)
        layout.add_argument("compiler")
        layout.add_argument("golden")
    arguments = parser.parse_args()
    checks = {"symbols": check_symbols, "needed": check_needed, "plugin": check_plugin,
              "table": check_table, "layout": check_layout, "layout-update": update_layout}
    findings = checks[arguments.command](arguments)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
