# SPDX-License-Identifier: Apache-2.0
"""Sizes, alignments and offsets of the public structs as the C compiler sees them, by a small compiled program."""
import json
import os
import subprocess
import tempfile


def program(model):
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "shardwright/shardwright.h"', "int main(void) {",
             '  printf("{");']
    for i, struct in enumerate(model.structs):
        comma = "," if i else ""
        lines.append(f'  printf("{comma}\\"{struct.name}\\":{{\\"size\\":%zu,\\"align\\":%zu,\\"offsets\\":{{", '
                     f"sizeof({struct.name}), _Alignof({struct.name}));")
        for j, field in enumerate(struct.fields):
            lines.append(f'  printf("{"," if j else ""}\\"{field.name}\\":%zu", offsetof({struct.name}, {field.name}));')
        lines.append('  printf("}}");')
    return "\n".join(lines + ['  printf("}");', "  return 0;", "}", ""])


def measure(model, include, compiler):
    """struct name -> {size, align, offsets}; include: folder that holds shardwright/."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "probe.c"), os.path.join(folder, "probe")
        with open(source, "w", encoding="ascii") as f:
            f.write(program(model))
        subprocess.run([compiler, "-std=c11", "-I", include, "-o", binary, source], check=True)
        return json.loads(subprocess.run([binary], check=True, stdout=subprocess.PIPE).stdout)
