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
PYTHON_CALLS = PYTHON.with_name("calls.py")
PYTHON_PLANNING = PYTHON.with_name("planning.py")
PYTHON_GLOBAL_PLAN = PYTHON.with_name("global_plan.py")
JAVA = ROOT / "bindings" / "java" / "src" / "main" / "java" / "io" / "shardwright"
RUST = ROOT / "bindings" / "rust" / "shardwright" / "src" / "options.rs"
RUST_PLANNING = RUST.with_name("planning.rs")
RUST_RESHARD = RUST.with_name("reshard.rs")
RUST_CONVERT = RUST.with_name("convert.rs")

# Option of each call -> its default: a word of WORDS, or what stands for "the library's own".
CALLS = {
    "save": {"overwrite": "replace", "durability": "full", "digests": "on", "owner": "balanced",
             "verify_replicas": "auto", "kind": "empty", "memory_budget": "0", "threads": "0", "deadline": "none",
             "keep_generations": "0", "file_mode": "0", "metadata": "empty", "trace_path": "none", "format": "native",
             "preset": "native", "max_shard_size": "0", "hold": "off", "priority": "normal", "common": "file", "integrity": "off",
             "progress": "none"},
    "load": {"verify": "on_read", "read_path": "auto", "exchange": "auto", "missing": "error", "unexpected": "report",
             "cast": "error", "shape": "error", "strict": "empty", "memory_budget": "0", "threads": "0", "deadline": "none", "trace_path": "none", "format": "auto",
             "preset": "native", "progress": "none"},
    "convert": {"format": "native", "overwrite": "refuse", "durability": "full", "common": "file", "integrity": "off", "compare": "on", "threads": "0", "file_mode": "0",
                "memory_budget": "0", "max_shard_size": "0", "deadline": "none"},
    "reshard": {"tensor_parallel": "0", "pipeline_parallel": "0", "expert_parallel": "0",
                "expert_tensor_parallel": "0", "data_parallel": "0", "pipeline_layers": "empty",
                "optimizer": "fully_reshardable", "job": "none", "map": "none", "dry_run": "off", "overwrite": "refuse",
                "durability": "full", "compare": "on", "threads": "0", "file_mode": "0", "memory_budget": "0", "deadline": "none"},
    "open": {"verify": "on_read", "read_path": "auto", "format": "auto", "memory_budget": "0", "threads": "0", "deadline": "none"},
    "describe": {"kind": "local_save", "rank": "0", "world_size": "0", "kinds": "empty", "agreement": "empty"},
    "merge": {"owner": "balanced", "preset": "native", "cover": "full", "verify_replicas": "auto"},
    "match": {"order": "wanted", "cover": "full", "missing": "error", "first_replica": "off", "rank": "none"},
}
# Calls of the module planning: keyword arguments in Python. Global plans have them too, without these.
PLANNING = {"describe": "describe", "merge": "merge", "match": "match"}
GLOBAL_PLAN = {"describe": {"kind"}, "merge": {"cover"}}
# Words of an option in the order of their numbers; the first is what a zeroed C struct means. The format "auto" is native
# when saving and what is recognised when reading.
WORDS = {
    "overwrite": ["replace", "refuse"],
    "durability": ["full", "none"],
    "optimizer": ["fully_reshardable", "dp_reshardable"],
    "digests": ["on", "off"],
    "hold": ["off", "on"],
    "priority": ["normal", "background"],
    "common": ["file", "object"],
    "integrity": ["off", "sha256"],
    "owner": ["balanced", "lowest_rank", "exact", "all"],
    "verify_replicas": ["auto", "all", "off"],
    "kind": ["auto", "replicated", "sharded", "rank_local"],
    "missing": ["error", "report"],
    "unexpected": ["report", "error"],
    "cast": ["error", "allow"],
    "shape": ["error", "crop_and_pad"],
    "verify": ["on_read", "off"],
    "read_path": ["auto", "direct", "buffered"],
    "exchange": ["auto", "off", "always"],
    "format": ["auto", "native", "torch_dcp", "safetensors", "megatron"],
    "preset": ["native", "hyperparallel", "torch", "megatron"],
    "cover": ["full", "disjoint", "off"],
    "order": ["wanted", "sweep"],
    "described": ["local_save", "merged_save"],
}
# Options of two words that are booleans in Java and Rust.
BOOLEANS = {"digests", "hold"}
# Defaults that are not what a zeroed C struct means: a host of C says so itself.
NOT_ZERO = {("convert", "format"), ("convert", "overwrite"), ("reshard", "overwrite")}
# Words whose numbers do not count from 0; the C struct has 0 for the first as well.
NUMBERS = {"described": [1, 5]}
# The option of a call whose words stand under another name.
WORDS_OF = {("describe", "kind"): "described"}
# Names of the constants in C and of the enums in Java and Rust, where they do not follow from the option's name.
C_PREFIXES = {"order": "MATCH_BY", "described": "PLAN"}
ENUMS = {"order": "MatchOrder", "optimizer": "OptimizerLayout"}
C_STRUCTS = {"save": "shw_save_options", "load": "shw_load_options", "open": "shw_checkpoint_options",
             "convert": "shw_convert_options", "reshard": "shw_reshard_options",
             "describe": "shw_describe_options", "merge": "shw_merge_options", "match": "shw_match_options"}
# How an option that is more than one number lies in the C struct.
C_FIELDS = {
    "deadline": ["deadline_ns"],
    "kind": ["kind_globs", "kind_offsets", "kind_values", "kind_count"],
    "metadata": ["metadata", "metadata_offsets", "metadata_count"],
    "strict": ["strict_globs", "strict_offsets", "strict_rules", "strict_shapes", "strict_count"],
    "kinds": ["kind_globs", "kind_offsets", "kind_values", "kind_count"],
    "agreement": ["agreement", "agreement_size"],
    "first_replica": [],  # a flag
    "compare": [],  # a flag
    "dry_run": [],  # a flag
    "pipeline_layers": ["pipeline_layers", "pipeline_layer_count"],
    "progress": ["progress", "progress_user"],
}
# What C structs hold beside options: their frame and the handle that other languages have as an interrupt.
C_FRAME = {"struct_size", "flags", "reserved", "reserved0", "reserved1", "cancellation"}
# What Rust, which has no interrupts, has beside options as well.
RUST_HANDLES = {"cancellation"}
# Options that the functions in Python have as keyword arguments of their own, beside the typed ones.
PYTHON_KEYWORDS = {"progress"}
# Arguments of the calls in Python and Rust, options of them in Java.
JAVA_ARGUMENTS = {"context", "collective"}
JAVA_ARGUMENTS_OF = {"open": {"rank"}}
CLASSES = {"save": "SaveOptions", "load": "LoadOptions", "open": "OpenOptions", "convert": "ConvertOptions", "reshard": "ReshardOptions",
           "describe": "DescribeOptions",
           "merge": "MergeOptions", "match": "MatchOptions"}


def words_of(call, option):
    """Key of the option's words in WORDS; None when it has none."""
    key = WORDS_OF.get((call, option), option)
    return key if key in WORDS else None


def option_fields(call, option):
    """Fields of the C struct that hold the option."""
    return [option] if (call, option) in WORDS_OF else C_FIELDS.get(option, [option])


def c_fields(call):
    """Names of the fields of the call's struct."""
    text = "".join(path.read_text(encoding="ascii") for path in sorted(HEADERS.glob("*.h")))
    body = re.search(rf"typedef struct {C_STRUCTS[call]} {{(.*?)\n}}", text, re.S)[1]
    return [field.split()[-1].lstrip("*") for field in body.split(";") if field.strip()]


def c_words(option):
    """Words of the option's constants, by number."""
    text = "".join(path.read_text(encoding="ascii") for path in sorted(HEADERS.glob("*.h")))
    found = re.findall(rf"\bSHW_{C_PREFIXES.get(option, option.upper())}_(\w+) = (\d+)", text)
    if option in NUMBERS:
        found = [(word, number) for word, number in found if int(number) in NUMBERS[option]]
    longer = tuple(other[len(option) + 1:] + "_" for other in WORDS if other.startswith(option + "_"))
    return {int(number): word.lower() for word, number in found if not word.lower().startswith(longer)}


def python_module():
    return ast.parse(PYTHON.read_text(encoding="utf-8")).body


def python_literals():
    """Words of each type of the module that is a Literal."""
    return {node.targets[0].id: list(ast.literal_eval(node.value.slice)) for node in python_module()
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and node.value.value.id == "Literal"}


def python_numbered():
    """Type that gives WORDS, by option, and KINDS their words and numbers."""
    found = {}
    for node in python_module():
        if isinstance(node, ast.AnnAssign) and node.target.id == "WORDS":
            found |= {key.value: value.args[0].id for key, value in zip(node.value.keys, node.value.values, strict=True)}
        if isinstance(node, ast.Assign) and node.targets[0].id == "KINDS":
            found["kind"] = node.value.args[0].id
    return found


def python_typed_options(call):
    """Option of the call's TypedDict -> its type as text."""
    made = next(node for node in python_module() if isinstance(node, ast.ClassDef) and node.name == CLASSES[call])
    return {node.target.id: ast.unparse(node.annotation) for node in made.body if isinstance(node, ast.AnnAssign)}


def keyword_arguments(path, function):
    """Keyword-only arguments of the function (class.method for a method) and their defaults."""
    body, node = ast.parse(path.read_text(encoding="utf-8")).body, None
    for name in function.split("."):
        node = next(n for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name)
        body = node.body
    return {argument.arg: None if default is None else ast.literal_eval(default)
            for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)}


def python_options(call):
    if call in PLANNING:
        return set(keyword_arguments(PYTHON_PLANNING, PLANNING[call]))
    both = [set(keyword_arguments(PYTHON_CALLS, name)) for name in (call, f"{call}_async")] if call in ("save", "load") else [set()]
    return set(python_typed_options(call)) | (PYTHON_KEYWORDS & set.intersection(*both))


def python_words(option):
    """Words of the option and their numbers."""
    if option == "described":
        tree = ast.parse(PYTHON_PLANNING.read_text(encoding="utf-8"))
        return next(ast.literal_eval(node.value) for node in tree.body
                    if isinstance(node, ast.Assign) and node.targets[0].id == "_PLAN_KINDS")
    return {word: number for number, word in enumerate(python_literals()[python_numbered()[option]])}


def python_defaults(call):
    """Word that the module takes when an option is not given."""
    if call in PLANNING:
        return {name: default for name, default in keyword_arguments(PYTHON_PLANNING, PLANNING[call]).items()
                if words_of(call, name)}
    return next(ast.literal_eval(node.value) for node in python_module()
                if isinstance(node, ast.Assign) and node.targets[0].id == f"_{call.upper()}_WORDS")


def snake(name):
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)


def java_text(name):
    return next(JAVA.rglob(f"{name}.java")).read_text(encoding="utf-8")


def java_options(call):
    """Setters of the call's class, in snake_case."""
    name = CLASSES[call]
    return {snake(found) for found in re.findall(rf"public {name} (\w+)\(", java_text(name)) if found != name}


def java_defaults(call):
    return {snake(name): word.lower()
            for name, word in re.findall(r"private \w+ (\w+) = [A-Z]\w+\.([A-Z_]+);", java_text(CLASSES[call]))}


def enum_name(option):
    return ENUMS.get(option, "".join(part.capitalize() for part in option.split("_")))


def java_words(option):
    name = enum_name(option)
    return [word.lower() for word in re.findall(r"^    ([A-Z_0-9]+)\(", java_text(name), re.M)]


def rust_options(call):
    text = {"reshard": RUST_RESHARD, "convert": RUST_CONVERT}.get(call, RUST_PLANNING if call in PLANNING else RUST).read_text(encoding="utf-8")
    body = re.search(rf"pub struct {CLASSES[call]} {{(.*?)\n *}}", text, re.S)[1]
    return set(re.findall(r"pub (\w+):", body)) - RUST_HANDLES


def rust_words(option):
    """Words of the option's enum, the default one first."""
    name = enum_name(option)
    text = RUST.read_text(encoding="utf-8") + RUST_RESHARD.read_text(encoding="utf-8")
    body = re.search(rf"\n    {name} {{(.*?)\n    }}", text, re.S)[1]
    found = re.findall(r'(#\[default\] )?\w+ = SHW_\w+, "(\w+)";', body)
    return [word for _, word in sorted(found, key=lambda item: not item[0])]


def rust_save_defaults():
    """The words of the one struct whose defaults are written out."""
    body = re.search(r"pub struct SaveOptions {(.*?)\n *}", RUST.read_text(encoding="utf-8"), re.S)[1]
    return {name: snake(word).lstrip("_") for name, word in re.findall(r"pub (\w+): \w+ = [A-Z]\w+::([A-Z]\w+),", body)}
