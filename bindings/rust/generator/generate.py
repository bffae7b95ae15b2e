# SPDX-License-Identifier: Apache-2.0
"""generate.py --swig SWIG --interface FILE.i --include DIR --output DIR [--check]

Runs swig -xml over the interface file, builds the model and writes ffi.rs, table.rs, layout.rs and raw.rs. With --check
nothing is written: exit code 1 names each file that differs from what would be generated.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import emit
import emit_raw
import layout_probe
from xml_model import Refused, read_model


STYLE = "max_width=120,use_small_heuristics=Max"  # as bindings/rust/rustfmt.toml


def swig_xml(options, folder):
    path = os.path.join(folder, "api.xml")
    swig_folder = os.path.dirname(os.path.abspath(options.interface))
    annotate = [sys.executable, os.path.join(swig_folder, "annotate.py")]
    subprocess.run([*annotate, os.path.join(options.include, "shardwright"), os.path.join(folder, "annotations.i")], check=True)
    includes = [f"-I{d}" for d in [options.include, os.path.join(options.include, "shardwright"), swig_folder, folder]]
    subprocess.run([options.swig, "-xml", "-xmllite", "-Wall", "-Werror", *includes, "-o", path, options.interface], check=True)
    return path


def headers_below(include):
    """Tells the library's headers from those of SWIG, wherever the clone lies and whatever it is called."""
    ours = os.path.realpath(os.path.join(include, "shardwright"))
    return lambda path: os.path.dirname(os.path.realpath(path)) == ours


def generate(options):
    with tempfile.TemporaryDirectory() as folder:
        model = read_model(swig_xml(options, folder), headers_below(options.include))
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
