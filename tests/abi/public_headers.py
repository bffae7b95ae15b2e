# SPDX-License-Identifier: Apache-2.0
"""Reads the public C headers: comment blocks, functions, callbacks, structs and constants.

The headers keep to one dialect (include/shardwright/base.h), so regular expressions are enough; what
they miss is caught by the compiler and by SWIG, which read the same files in other gates.
"""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDE = ROOT / "include"
HEADERS = INCLUDE / "shardwright"
ORDER = ["base", "log", "buffer", "report", "tensor", "layout", "megatron", "state", "plan",
         "storage_table", "storage", "collective_table", "collective", "context", "job", "checkpoint",
         "checkpoint_entries", "save", "load", "load_exchange", "torch_items", "convert", "reshard", "pickles", "planning", "estimate", "global_plan",
         "communicator_table", "communicator", "work", "device_table", "device",
         "hsdp", "hsdp_unit", "hsdp_phases", "hsdp_estimate", "plugin", "api"]

# Headers whose function types are the slots of an extension of that name.
EXTENSIONS = {"megatron"}

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"SHW_API\s+([^;(]*?)\b(shw_\w+)\(([^;]*)\)\s*SHW_NOEXCEPT;")
CALLBACK = re.compile(r"typedef\s+([^;(]*?)\(SHW_CALLBACK\*\s*(shw_\w+)\)\(([^;]*?)\);")
STRUCT = re.compile(r"(?:typedef )?struct (shw_\w+) \{(.*?)\n\}[^;]*;", re.S)
HANDLE = re.compile(r"typedef struct (shw_\w+) (shw_\w+);")
ENUM = re.compile(r"enum \{(.*?)\};", re.S)
DEFINE = re.compile(r"^#define (SHW_\w+) (\S+)$", re.M)


@dataclasses.dataclass
class Parameter:
    type: str
    name: str
    nullable: bool

    @property
    def is_pointer(self):
        return self.type.endswith("*")


@dataclasses.dataclass
class Function:
    name: str
    result: str
    parameters: list
    comment: str
    header: str
    line: int

    @property
    def has_err(self):
        return bool(self.parameters) and self.parameters[-1].name == "err"


def text_of(stem):
    return (HEADERS / f"{stem}.h").read_text(encoding="ascii")


def parameters_of(text):
    text = " ".join(text.split())
    if text == "void":
        return []
    found = []
    for part in text.split(","):
        nullable = "SHW_NULLABLE" in part
        part = part.replace("SHW_NULLABLE", " ")
        match = re.match(r"(.*?)(\w+)$", part.strip(), re.S)
        found.append(Parameter(" ".join(match[1].split()).replace(" *", "*"), match[2], nullable))
    return found


def comment_before(text, position):
    """The comment block that ends right before a declaration, or ''."""
    last = ""
    for match in COMMENT.finditer(text, 0, position):
        last = match
    if not last or text[last.end():position].strip():
        return ""
    return last.group()


def functions(pattern=FUNCTION):
    for stem in ORDER:
        text = text_of(stem)
        for match in pattern.finditer(text):
            yield Function(match[2], " ".join(match[1].replace("SHW_MUST_USE", "").split()),
                           parameters_of(match[3]), comment_before(text, match.start()),
                           f"{stem}.h", text.count("\n", 0, match.start()) + 1)


def callbacks():
    return functions(CALLBACK)


def extension_functions():
    """Slots of the tables that shw_get_extension gives: (name of the extension, function)."""
    for function in callbacks():
        stem = function.header.removesuffix(".h")
        if stem in EXTENSIONS:
            yield stem, function


def structs():
    """Yields (name, [field name, ...], is array length or 0) in header order, api.h left out."""
    for stem in ORDER[:-1]:
        for match in STRUCT.finditer(text_of(stem)):
            body = COMMENT.sub("", match[2])
            names = [re.search(r"(\w+)(?:\[\d+\])?\s*$", field)[1]
                     for field in body.split(";") if field.strip()]
            yield match[1], names


def handles():
    defined = {name for name, _ in structs()} | {"shw_api"}
    for stem in ORDER[:-1]:
        for match in HANDLE.finditer(text_of(stem)):
            if match[1] not in defined:
                yield match[1]


def constants():
    """Yields the names of all integer constants in header order."""
    for stem in ORDER[:-1]:
        text = COMMENT.sub("", text_of(stem))
        found = [(m.start(1), name) for m in ENUM.finditer(text)
                 for name in re.findall(r"(SHW_\w+) =", m[1])]
        found += [(m.start(), m[1]) for m in DEFINE.finditer(text) if re.fullmatch(r"\d+", m[2])]
        for _, name in sorted(found):
            yield name


STATUS_NAMES = [name[4:] for name in constants()
                if name in {"SHW_OK"} or re.search(rf"\b{name} = \d+", text_of("base"))]
