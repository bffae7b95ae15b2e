# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of the other languages and the command line over the demo's checkpoint.

A reader program is called as PROGRAM CHECKPOINT NAME and prints tab-separated lines:
    tensor <TAB> name <TAB> dtype <TAB> shape as 2,3 <TAB> SHA-256 in hex        (one per tensor)
    slice <TAB> name <TAB> bytes of NAME[2:4, 0:4] in hex
"""
import os
import subprocess
import sys


def cli(build, *arguments):
    """One call of the command line; the finished process with text output."""
    command = [os.path.join(build, "bin", "shardwright"), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def programs(build):
    """Language -> command of the reader program, for the languages that this build has."""
    java_home = os.environ.get("JAVA_HOME")
    java = os.path.join(java_home, "bin", "java") if java_home else "java"
    library = "-Dshardwright.library.path=" + os.path.join(build, "lib")
    jars = os.path.join(build, "java", "shardwright.jar") + ":" + os.path.join(build, "java", "java_reader.jar")
    return {"C": [os.path.join(build, "bin", "c_reader")],
            "Java": [java, library, "-cp", jars, "io.shardwright.examples.JavaReader"],
            "Rust": [os.path.join(build, "bin", "rust_inspect")]}


def run_reader(command, checkpoint, name):
    """(name -> dtype, shape, digest), hex of the slice."""
    done = subprocess.run([*command, checkpoint, name], stdout=subprocess.PIPE, text=True, check=True)
    tensors, slice_hex = {}, None
    for line in done.stdout.splitlines():
        kind, *fields = line.split("\t")
        if kind == "tensor":
            shape = [int(x) for x in fields[2].split(",") if x]
            tensors[fields[0]] = {"dtype": fields[1], "shape": shape, "digest": fields[3]}
        elif kind == "slice":
            slice_hex = fields[1]
    return tensors, slice_hex


def flip_byte(build, checkpoint, tensor):
    """Flips the first bit of a tensor's first chunk; returns the name of the file."""
    sys.path.insert(0, os.path.join(build, "python"))
    import shardwright
    with shardwright.open(checkpoint) as opened:
        chunk = opened.tensor(tensor).chunks()[0]
    with open(os.path.join(checkpoint, chunk.file), "r+b") as f:
        f.seek(chunk.offset)
        byte = f.read(1)[0]
        f.seek(chunk.offset)
        f.write(bytes([byte ^ 1]))
    return os.path.basename(chunk.file)
