#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gates on the public headers; one per sub-command, each prints its findings and fails on any.

  compile STANDARD COMPILER...   every header alone in that standard, with the strictest warnings
  selfcontained COMPILER         first in a file, twice in a file, two files linked
  swig SWIG                      swig -xml -Wall -Werror reads all of them
  dialect SWIG                   types and constructs that one of the languages cannot take
  tags                           comment blocks: tags, their order, their words, at most 12 lines
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

import public_headers as headers

WARNINGS = ["-pedantic-errors", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-fsyntax-only"]
C_WARNINGS = ["-Wstrict-prototypes", "-Wc++-compat"]
CXX_WARNINGS = ["-Wold-style-cast"]
LONGEST_COMMENT = 12
LONGEST_HEADER = 400
GENERATED = "api.h"  # one slot per function, which nobody reads from one end to the other
BLOCKS = {"no", "io", "collective", "wait"}
BANNED_TEXT = {
    r"\blong\b|\bsize_t\b|\bssize_t\b|\bwchar_t\b|\b_?[bB]ool\b": "a type whose width differs",
    r"__attribute__|__declspec|_Static_assert|_Noreturn|_Alignas|_Atomic|\brestrict\b|\bunion\b":
        "a word that SWIG or another language refuses",
    r"\bUINT64_C\b|\bINT64_C\b|0x[0-9a-fA-F]+|\d+[uUlL]+\b|<<": "a literal that SWIG misreads",
    r"\.\.\.": "varargs",
    r"\bstatic\b|\bextern\b(?! \"C\")|\binline\b": "a definition or data",
    r"\(\)": "an empty parameter list",
}


def run(command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)


def all_headers():
    return sorted(headers.HEADERS.glob("*.h"))


def check_compile(arguments):
    findings = []
    standard = arguments.standard
    cxx = standard.startswith("c++")
    language = ["-x", "c++" if cxx else "c", f"-std={standard}"]
    for compiler in arguments.compilers:
        for header in all_headers():
            result = run([compiler, *language, *WARNINGS, *(CXX_WARNINGS if cxx else C_WARNINGS),
                          f"-I{headers.INCLUDE}", "-include", str(header), "/dev/null"])
            if result.returncode != 0:
                findings.append(f"{compiler} -std={standard} {header.name}:\n{result.stderr}")
    return findings


def check_selfcontained(arguments):
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        for header in all_headers():
            source = base / f"{header.stem}.c"
            source.write_text(f"#include <shardwright/{header.name}>\n#include <shardwright/{header.name}>\n"
                              f"int once_{header.stem};\n")
            result = run([arguments.compiler, "-std=c11", "-Wall", "-Wextra", "-Werror",
                          f"-I{headers.INCLUDE}", "-c", str(source), "-o", str(source.with_suffix(".o"))])
            if result.returncode != 0:
                findings.append(f"{header.name} first and twice in a file:\n{result.stderr}")
        (base / "main.c").write_text("#include <shardwright/shardwright.h>\nint main(void) { return 0; }\n")
        objects = [str(path) for path in sorted(base.glob("*.o"))]
        result = run([arguments.compiler, f"-I{headers.INCLUDE}", str(base / "main.c"), *objects,
                      "-o", str(base / "linked")])
        if result.returncode != 0:
            findings.append(f"two files that include the headers do not link:\n{result.stderr}")
    return findings


def swig_xml(swig, folder):
    interface = pathlib.Path(folder) / "all.i"
    lines = ["%module shw_native", "%include <stdint.i>"]
    lines += [f'%include "{headers.HEADERS / stem}.h"' for stem in headers.ORDER]
    interface.write_text("\n".join(lines) + "\n")
    xml = pathlib.Path(folder) / "all.xml"
    result = run([swig, "-xml", "-xmllite", "-Wall", "-Werror", "-o", str(xml), str(interface)])
    return result, xml


def check_swig(arguments):
    with tempfile.TemporaryDirectory() as folder:
        result, _ = swig_xml(arguments.swig, folder)
        return [result.stderr or result.stdout] if result.returncode != 0 else []


def node_attributes(node):
    found = node.find("attributelist")
    return {} if found is None else {a.get("name"): a.get("value") for a in found.findall("attribute")}


def xml_findings(xml):
    findings = []
    enums = set()
    for node in tree.parse(xml).iter():
        attributes = node_attributes(node)
        name = attributes.get("name", "?")
        if node.tag == "enum" and "name" in attributes:
            enums.add(attributes["name"])
        if "bitfield" in attributes:
            findings.append(f"{name}: a bit-field")
        if attributes.get("nested") == "1" or attributes.get("unnamed", "").startswith("$"):
            findings.append(f"{name}: a definition inside a struct")
        if node.tag == "cdecl" and attributes.get("kind") == "function":
            if attributes.get("decl", "").startswith("f()."):
                findings.append(f"{name}: () is no prototype")
            if attributes.get("code"):
                findings.append(f"{name}: an inline body")
            for parameter in node.findall("attributelist/parmlist/parm"):
                kind = node_attributes(parameter).get("type", "")
                if kind.startswith("v(") or "p.f(" in kind or kind.startswith("enum "):
                    findings.append(f"{name}: a parameter of type {kind}")
        if attributes.get("storage") == "extern":
            findings.append(f"{name}: data is exported")
    return findings + [f"enum {name}: enumerations have no name" for name in sorted(enums)]


def text_findings():
    findings = []
    for header in all_headers():
        # The macro block of base.h is the one place where compiler words are allowed.
        text = headers.COMMENT.sub("", header.read_text(encoding="ascii"))
        text = re.sub(r"^#if defined\(SWIG\).*?^#endif\n#endif\n", "", text, flags=re.S | re.M)
        for pattern, reason in BANNED_TEXT.items():
            for match in re.finditer(pattern, text):
                findings.append(f"{header.name}: '{match.group()}' is {reason}")
        for include in re.findall(r"#include (\S+)", text):
            if include != "<stdint.h>" and not re.fullmatch(r'"\w+\.h"', include):
                findings.append(f"{header.name}: includes {include}")
        if header.name != GENERATED and header.read_text().count("\n") > LONGEST_HEADER:
            findings.append(f"{header.name}: more than {LONGEST_HEADER} lines")
    return findings


def check_dialect(arguments):
    with tempfile.TemporaryDirectory() as folder:
        result, xml = swig_xml(arguments.swig, folder)
        if result.returncode != 0:
            return [result.stderr]
        return xml_findings(xml) + text_findings()


TAG_BLOCK = re.compile(
    r"\n \* Threads: (?P<threads>.+)\n \* Blocks: (?P<blocks>.+)\n \* Owns: (?P<owns>.+)\n"
    r" \* Errors: (?P<errors>.+(?:\n \*   .+)*)\n \* Since: (?P<since>.+) \*/$")
SINCE = re.compile(r"\n \* Since: (.+) \*/$")
SINCE_VALUE = re.compile(r"\d+\.\d+ (unstable|stable|deprecated \d+\.\d+ use \w+)")


def function_findings(function):
    where = f"{function.header}:{function.line} {function.name}"
    match = TAG_BLOCK.search(function.comment)
    if not match:
        return [f"{where}: the five tags are not there, in order, at the end of a comment block"]
    findings = []
    names = {parameter.name for parameter in function.parameters}
    if not re.fullmatch(r"(any|exclusive\(\w+\))(, callback-safe)?", match["threads"]):
        findings.append(f"{where}: Threads: {match['threads']}")
    if match["blocks"] not in BLOCKS:
        findings.append(f"{where}: Blocks: {match['blocks']}")
    if match["owns"] != "-":
        for owned in match["owns"].split(", "):
            if owned not in names:
                findings.append(f"{where}: Owns: there is no parameter {owned}")
    errors = " ".join(match["errors"].replace("\n *", " ").split())
    if errors not in ("-", "any"):
        for code in errors.split(", "):
            if re.fullmatch(r"[A-Z_]+", code) and code not in headers.STATUS_NAMES:
                findings.append(f"{where}: Errors: there is no status {code}")
    if not SINCE_VALUE.fullmatch(match["since"]):
        findings.append(f"{where}: Since: {match['since']}")
    return findings


def declaration_findings():
    """Structs, handles, typedefs and constants carry a comment block that ends with Since."""
    findings = []
    starts = re.compile(r"^(typedef (?!.*SHW_CALLBACK)|struct shw_\w+ \{|enum \{)", re.M)
    for stem in headers.ORDER:
        text = headers.text_of(stem)
        for match in starts.finditer(text):
            comment = headers.comment_before(text, match.start())
            since = SINCE.search(comment)
            if not since or not SINCE_VALUE.fullmatch(since[1]):
                line = text.count("\n", 0, match.start()) + 1
                findings.append(f"{stem}.h:{line}: no comment block that ends with Since")
        for match in headers.COMMENT.finditer(text):
            if match.start() and match.group().count("\n") + 1 > LONGEST_COMMENT:
                line = text.count("\n", 0, match.start()) + 1
                findings.append(f"{stem}.h:{line}: a comment of more than {LONGEST_COMMENT} lines")
    return findings


def check_tags(_):
    findings = declaration_findings()
    for function in list(headers.functions()) + list(headers.callbacks()):
        findings += function_findings(function)
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    compile_command = commands.add_parser("compile")
    compile_command.add_argument("standard")
    compile_command.add_argument("compilers", nargs="+")
    commands.add_parser("selfcontained").add_argument("compiler")
    commands.add_parser("swig").add_argument("swig")
    commands.add_parser("dialect").add_argument("swig")
    commands.add_parser("tags")
    arguments = parser.parse_args()
    findings = globals()[f"check_{arguments.command}"](arguments)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
