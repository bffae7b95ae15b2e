# SPDX-License-Identifier: Apache-2.0
"""The one reader of the interface for all that is generated from it: SWIG's XML of the C headers as a small model of
handles, integer aliases, enumerations, macros, structs, callbacks and functions, in header order. Refuses what the header
dialect forbids, naming the declaration.
"""
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree


class Refused(Exception):
    """A declaration that cannot be generated; the text names it and says why."""


@dataclasses.dataclass
class Parameter:
    name: str
    type: str  # SWIG type string, e.g. p.q(const).char


@dataclasses.dataclass
class Function:
    name: str
    result: str
    parameters: list
    doc: str = ""
    tags: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Field:
    name: str
    type: str
    callback: Function | None = None  # inline function pointer


@dataclasses.dataclass
class Struct:
    name: str
    fields: list
    doc: str = ""


@dataclasses.dataclass
class Constant:
    name: str
    value: int | str
    from_enum: bool
    doc: str = ""


@dataclasses.dataclass
class Model:
    handles: list = dataclasses.field(default_factory=list)    # (name, doc)
    foreign: list = dataclasses.field(default_factory=list)    # struct tags that others define
    aliases: list = dataclasses.field(default_factory=list)    # (name, base, doc)
    constants: list = dataclasses.field(default_factory=list)
    structs: list = dataclasses.field(default_factory=list)
    callbacks: list = dataclasses.field(default_factory=list)
    functions: list = dataclasses.field(default_factory=list)


def attributes_of(node):
    found = node.find("attributelist")
    return {} if found is None else {a.get("name"): a.get("value") or "" for a in found.findall("attribute")}


def parameters_of(node, owner):
    found = node.find("attributelist/parmlist")
    if found is None:
        if "f()." in attributes_of(node).get("decl", ""):
            raise Refused(f"{owner}: empty parameter list, write (void)")
        return []
    result = []
    for parm in found.findall("parm"):
        attributes = attributes_of(parm)
        kind = attributes["type"]
        if kind == "void":
            continue
        if kind.startswith("v("):
            raise Refused(f"{owner}: varargs")
        if "name" not in attributes:
            raise Refused(f"{owner}: a parameter has no name")
        # An array parameter decays to a pointer.
        result.append(Parameter(attributes["name"], re.sub(r"^a\(\d*\)\.", "p.", kind)))
    return result


def after_parameters(decl):
    """What follows f(...) in a declarator: the pointers of the result."""
    start = decl.index("f(") + 1
    depth = 0
    for i in range(start, len(decl)):
        depth += (decl[i] == "(") - (decl[i] == ")")
        if depth == 0:
            return decl[i + 1 :].lstrip(".")
    raise Refused(f"unbalanced declarator {decl}")


def function_of(node):
    a = attributes_of(node)
    doc = a.get("feature_docstring", "")
    tags = {k.removeprefix("feature_shw_"): v for k, v in a.items() if k.startswith("feature_shw_")}
    suffix = after_parameters(a["decl"])
    if "f(" in suffix:
        raise Refused(f"{a['name']}: returns a function pointer")
    return Function(a["name"], suffix + a["type"], parameters_of(node, a["name"]), doc, tags)


def struct_of(node):
    a = attributes_of(node)
    name = a.get("tdname") or a["name"]
    if a.get("kind") != "struct":
        raise Refused(f"{name}: unions are not part of the dialect")
    if a.get("nested") == "1" or a.get("unnamed", "").startswith("$"):
        raise Refused(f"{name}: nested definition")
    fields = []
    for child in node.findall("cdecl"):
        c = attributes_of(child)
        if "bitfield" in c:
            raise Refused(f"{name}.{c['name']}: bit-field")
        decl = c.get("decl", "")
        if decl.startswith("p.f("):
            callback = function_of(child)
            fields.append(Field(c["name"], "", callback))
        elif decl == "a().":
            raise Refused(f"{name}.{c['name']}: flexible array")
        else:
            fields.append(Field(c["name"], decl + c["type"]))
    if node.findall("class") or node.findall("insert"):
        raise Refused(f"{name}: nested definition")
    return Struct(name, fields, a.get("feature_docstring", ""))


def number(text, owner):
    try:
        return int(text, 10)
    except (TypeError, ValueError):
        raise Refused(f"{owner}: the value must be one decimal literal") from None


class Reader:
    """Walks the include elements of our headers in order."""

    def __init__(self):
        self.model = Model()
        self.struct_names = set()

    def read(self, root, is_ours):
        for include in root.iter("include"):
            if is_ours(attributes_of(include).get("name", "")):
                for child in include:
                    self.node(child)
        return self.model

    def node(self, node):
        action = {"cdecl": self.cdecl, "class": self.struct, "classforward": self.forward, "constant": self.macro,
                  "enum": self.enum}.get(node.tag)
        if action:
            action(node)

    def cdecl(self, node):
        a = attributes_of(node)
        kind, doc = a.get("kind"), a.get("feature_docstring", "")
        if kind == "function":
            if a.get("storage") == "static":
                raise Refused(f"{a['name']}: inline function")
            self.model.functions.append(function_of(node))
        elif kind == "typedef":
            self.typedef(node, a, doc)
        elif kind == "variable":
            raise Refused(f"{a['name']}: extern data")

    def typedef(self, node, a, doc):
        name, base, decl = a["name"], a["type"], a.get("decl", "")
        if decl.startswith("p.f("):
            self.model.callbacks.append(function_of(node))
        elif base.startswith("struct "):
            if name not in self.struct_names:
                self.model.handles.append((name, doc))
        elif base.startswith("enum "):
            raise Refused(f"{name}: enum types have no fixed width")
        else:
            self.model.aliases.append((name, decl + base, doc))

    def struct(self, node):
        struct = struct_of(node)
        self.struct_names.add(struct.name)
        # A handle declared before its struct (shw_api) turns out to be a struct.
        self.model.handles = [h for h in self.model.handles if h[0] != struct.name]
        self.model.structs.append(struct)

    def forward(self, node):
        name = attributes_of(node)["name"]
        if not name.startswith("shw_") and name not in self.model.foreign:
            self.model.foreign.append(name)

    def macro(self, node):
        a = attributes_of(node)
        if not a["name"].startswith("SHW_"):
            return
        value = a["stringval"] if "stringval" in a else number(a.get("numval"), a["name"])
        self.model.constants.append(Constant(a["name"], value, False, a.get("feature_docstring", "")))

    def enum(self, node):
        for item in node.findall("enumitem"):
            a = attributes_of(item)
            value = number(a.get("enumnumval") or a.get("enumvalue"), a["name"])
            if not -(2**31) <= value < 2**31:
                raise Refused(f"{a['name']}: does not fit int32_t")
            self.model.constants.append(Constant(a["name"], value, True, a.get("feature_docstring", "")))


def read_model(path, is_ours):
    """Model of the XML file; is_ours(path of an included header) says which headers are walked."""
    return Reader().read(ElementTree.parse(path).getroot(), is_ours)


def swig_xml(swig, interface, include, folder):
    """Path of the XML of the interface file, written into `folder`."""
    path = os.path.join(folder, "api.xml")
    swig_folder = os.path.dirname(os.path.abspath(interface))
    annotate = [sys.executable, os.path.join(swig_folder, "annotate.py")]
    subprocess.run([*annotate, os.path.join(include, "shardwright"), os.path.join(folder, "annotations.i")], check=True)
    includes = [f"-I{d}" for d in [include, os.path.join(include, "shardwright"), swig_folder, folder]]
    subprocess.run([swig, "-xml", "-xmllite", "-Wall", "-Werror", *includes, "-o", path, interface], check=True)
    return path


def headers_below(include):
    """Tells the library's headers from those of SWIG, wherever the clone lies and whatever it is called."""
    ours = os.path.realpath(os.path.join(include, "shardwright"))
    return lambda path: os.path.dirname(os.path.realpath(path)) == ours


def interface_model(swig, interface, include):
    """Model of the interface file over the headers below `include`."""
    with tempfile.TemporaryDirectory() as folder:
        return read_model(swig_xml(swig, interface, include, folder), headers_below(include))
