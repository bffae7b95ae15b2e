# SPDX-License-Identifier: Apache-2.0
"""The options of the public calls, and what each language calls them.

OPTIONS is the table that all languages share: a new option is added here first. The readers below give the names that a
language has, from its sources, so that nothing has to be built.
"""
import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "shardwright"
PYTHON = ROOT / "bindings" / "python" / "shardwright" / "_options.py"
JAVA = ROOT / "bindings" / "java" / "src" / "main" / "java" / "io" / "shardwright"
RUST = ROOT / "bindings" / "rust" / "shardwright" / "src" / "options.rs"

# Option of each call -> its default: a word of WORDS, or what stands for "the library's own".
CALLS = {
    "save": {"overwrite": "replace", "durability": "full", "digests": "on", "owner": "balanced",
             "verify_replicas": "auto", "kind": "empty", "memory_budget": "0", "threads": "0", "deadline": "none",
             "keep_generations": "0", "file_mode": "0", "metadata": "empty", "trace_path": "none", "format": "native",
             "preset": "standard"},
    "load": {"verify": "on_read", "missing": "error", "unexpected": "report", "cast": "error", "shape": "error", "strict": "empty",
             "memory_budget": "0", "threads": "0", "deadline": "none", "trace_path": "none", "format": "auto",
             "preset": "standard"},
    "open": {"verify": "on_read", "format": "auto", "memory_budget": "0", "threads": "0", "deadline": "none"},
}
# Words of an option in the order of their numbers; the first is what a zeroed C struct means. The format "auto" is native
# when saving and what is recognised when reading.
WORDS = {
    "overwrite": ["replace", "refuse"],
    "durability": ["full", "none"],
    "digests": ["on", "off"],
    "owner": ["balanced", "lowest_rank", "exact", "all"],
    "verify_replicas": ["auto", "all", "off"],
    "kind": ["auto", "replicated", "sharded", "rank_local"],
    "missing": ["error", "report"],
    "unexpected": ["report", "error"],
    "cast": ["error", "allow"],
    "shape": ["error", "crop_and_pad"],
    "verify": ["on_read", "off"],
    "format": ["auto", "native", "torch_dcp"],
    "preset": ["standard", "default", "megatron"],
}
C_STRUCTS = {"save": "shw_save_options", "load": "shw_load_options", "open": "shw_checkpoint_options"}
# How an option that is more than one number lies in the C struct.
C_FIELDS = {
    "deadline": ["deadline_ns"],
    "kind": ["kind_globs", "kind_offsets", "kind_values", "kind_count"],
    "metadata": ["metadata", "metadata_offsets", "metadata_count"],
    "strict": ["strict_globs", "strict_offsets", "strict_rules", "strict_shapes", "strict_count"],
}
# What C structs hold beside options: their frame, and the handle that other languages have as an interrupt.
C_FRAME = {"struct_size", "flags", "reserved0", "reserved1", "cancellation"}
# Arguments of the calls in Python and Rust, options of them in Java.
JAVA_ARGUMENTS = {"context", "storage", "collective"}
CLASSES = {"save": "SaveOptions", "load": "LoadOptions", "open": "OpenOptions"}


def c_fields(call):
    """Names of the fields of the call's struct."""
    text = "".join(path.read_text(encoding="ascii") for path in sorted(HEADERS.glob("*.h")))
    body = re.search(rf"typedef struct {C_STRUCTS[call]} {{(.*?)\n}}", text, re.S)[1]
    return [field.split()[-1].lstrip("*") for field in body.split(";") if field.strip()]


def c_words(option):
    """Words of the option's constants, by number."""
    text = "".join(path.read_text(encoding="ascii") for path in sorted(HEADERS.glob("*.h")))
    found = re.findall(rf"\bSHW_{option.upper()}_(\w+) = (\d+)", text)
    longer = tuple(other[len(option) + 1:] + "_" for other in WORDS if other.startswith(option + "_"))
    return {int(number): word.lower() for word, number in found if not word.lower().startswith(longer)}


def python_constants():
    """Top-level literals of the module: WORDS, KINDS and the tuples of option names."""
    found = {}
    for node in ast.parse(PYTHON.read_text(encoding="utf-8")).body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        try:
            found[target.id] = ast.literal_eval(node.value)
        except (AttributeError, ValueError):
            continue  # no literal
    return found


def python_defaults(call):
    """Word that the module takes when an option is not given."""
    text = PYTHON.read_text(encoding="utf-8")
    body = re.search(rf"def {call}_options\(.*?(?=\ndef |\Z)", text, re.S)[0]
    return dict(re.findall(r'word\("\w+", o\.get\("(\w+)", "(\w+)"\)\)', body))


def snake(name):
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)


def java_text(name):
    return (JAVA / f"{name}.java").read_text(encoding="utf-8")


def java_options(call):
    """Setters of the call's class, in snake_case."""
    name = CLASSES[call]
    return {snake(found) for found in re.findall(rf"public {name} (\w+)\(", java_text(name)) if found != name}


def java_defaults(call):
    return {snake(name): word.lower()
            for name, word in re.findall(r"private \w+ (\w+) = [A-Z]\w+\.([A-Z_]+);", java_text(CLASSES[call]))}


def java_words(option):
    name = "".join(part.capitalize() for part in option.split("_"))
    return [word.lower() for word in re.findall(r"^    ([A-Z_]+)\(", java_text(name), re.M)]


def rust_options(call):
    text = RUST.read_text(encoding="utf-8")
    body = re.search(rf"pub struct {CLASSES[call]} {{(.*?)\n}}", text, re.S)[1]
    return set(re.findall(r"pub (\w+):", body))


def rust_words(option):
    """Words of the option's enum, the default one first."""
    name = "".join(part.capitalize() for part in option.split("_"))
    body = re.search(rf"\n    {name} {{(.*?)\n    }}", RUST.read_text(encoding="utf-8"), re.S)[1]
    found = re.findall(r"(#\[default\] )?(\w+) = SHW_", body)
    return [snake(word).lstrip("_") for _, word in sorted(found, key=lambda item: not item[0])]


def rust_save_defaults():
    """The words of the one struct whose defaults are written out."""
    body = re.search(r"impl Default for SaveOptions {(.*?)\n}", RUST.read_text(encoding="utf-8"), re.S)[1]
    return {name: snake(word).lstrip("_") for name, word in re.findall(r"(\w+): [A-Z]\w+::([A-Z]\w+),", body)}
