# SPDX-License-Identifier: Apache-2.0
"""generate.py --swig SWIG --interface FILE.i --include DIR --output DIR [--check]

Runs swig -xml over the interface file, builds the model and writes ffi.rs, table.rs, layout.rs and raw.rs. With --check
nothing is written: exit code 1 names each file that differs from what would be generated.
"""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "swig"))

import emit  # noqa: E402
import emit_raw  # noqa: E402
import layout_probe  # noqa: E402
from interface_model import Refused, interface_model  # noqa: E402


STYLE = "max_width=120,use_small_heuristics=Max"  # as bindings/rust/rustfmt.toml


def generate(options):
    model = interface_model(options.swig, options.interface, options.include)
    layouts = layout_probe.measure(model, options.include, options.compiler)
    return {"ffi.rs": emit.ffi(model), "table.rs": emit.table(model), "layout.rs": emit.layout(model, layouts),
            "raw.rs": emit_raw.raw(model)}


def formatted(texts, rustfmt):
    """The texts as rustfmt leaves them."""
    done = {}
    for name, text in texts.items():
        run = subprocess.run([rustfmt, "--edition", "2024", "--config", STYLE, "--emit", "stdout"], input=text, stdout=subprocess.PIPE, text=True,
                             check=True)
        done[name] = run.stdout
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--swig", default="swig")
    parser.add_argument("--interface", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--compiler", default=os.environ.get("CC", "cc"))
    parser.add_argument("--rustfmt", default="rustfmt")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        texts = formatted(generate(options), options.rustfmt)
    except Refused as e:
        print(f"{options.interface}: {e}", file=sys.stderr)
        return 1
    stale = []
    for name, text in texts.items():
        path = os.path.join(options.output, name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old != text:
            stale.append(path)
            if not options.check:
                os.makedirs(options.output, exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
    if options.check and stale:
        print("not what the headers give:", *stale, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
