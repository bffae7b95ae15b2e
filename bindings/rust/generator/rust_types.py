# SPDX-License-Identifier: Apache-2.0
"""SWIG type strings to Rust types."""
import re

from interface_model import Refused

PRIMITIVES = {"int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64", "uint8_t": "u8", "uint16_t": "u16",
              "uint32_t": "u32", "uint64_t": "u64", "float": "f32", "double": "f64", "char": "c_char", "void": "c_void"}
KEYWORDS = set("as async await box break const continue crate do dyn else enum extern false final fn for gen if impl in let "
               "loop macro match mod move mut override priv pub ref return self static struct super trait true try type "
               "typeof union unsafe unsized use virtual where while yield".split())
UNRAWABLE = {"self", "Self", "super", "crate"}


def identifier(name):
    if name in UNRAWABLE:
        return name + "_"
    return "r#" + name if name in KEYWORDS else name


def base_type(name, known):
    name = name.removeprefix("struct ")
    if name in PRIMITIVES:
        return PRIMITIVES[name]
    if name in known:
        return name
    raise Refused(f"unknown or forbidden type {name}")


def rust_type(text, known):
    """known: names of structs, handles, aliases and callbacks that may appear."""
    if text.startswith("p."):
        rest = text[2:]
        if rest.startswith("f("):
            raise Refused("inline function pointer as a parameter")
        constant = rest.startswith("q(const).")
        inner = rust_type(rest.removeprefix("q(const)."), known)
        return ("*const " if constant else "*mut ") + inner
    if text.startswith("q(const)."):
        return rust_type(text.removeprefix("q(const)."), known)
    array = re.match(r"a\((\d+)\)\.", text)
    if array:
        return f"[{rust_type(text[array.end():], known)}; {array.group(1)}]"
    return base_type(text, known)


def signature(function, known):
    """(name: type, ...) -> result of a function or callback, without its name."""
    parameters = ", ".join(f"{identifier(p.name)}: {rust_type(p.type, known)}" for p in function.parameters)
    result = "" if function.result == "void" else f" -> {rust_type(function.result, known)}"
    return f"({parameters}){result}"


def callback_type(function, known):
    return f"Option<unsafe extern \"C\" fn{signature(function, known)}>"
