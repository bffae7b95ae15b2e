# SPDX-License-Identifier: Apache-2.0
"""Writes raw.rs: one thin function per C function that ends in an error object.

A trailing out-parameter becomes the result, the error becomes RawError, (pointer, size) pairs become slices. A struct that
begins with its size has it set before the call.
"""
from emit import HEAD, doc_lines, known_names
from rust_types import identifier, rust_type


class Shape:
    """How one C function looks in raw.rs."""

    def __init__(self, function):
        self.parameters = list(function.parameters)
        self.has_error = bool(self.parameters) and self.parameters[-1].name == "err"
        if self.has_error:
            self.parameters.pop()
        self.out = self.parameters.pop() if self.has_error and self.parameters and self.returns_out() else None

    def returns_out(self):
        last = self.parameters[-1]
        return last.name == "out" and last.type.startswith("p.") and not last.type.startswith("p.q(const).p.")


def slice_pair(parameters, i):
    """(const void* x, uint64_t x_size) at position i."""
    if i + 1 >= len(parameters):
        return False
    a, b = parameters[i], parameters[i + 1]
    return a.type in ("p.q(const).void", "p.q(const).char") and b.type == "uint64_t" and (
        b.name == a.name + "_size" or (a.name == "data" and b.name == "size"))


def parameters_text(parameters, known):
    """(declarations, call arguments) with slices in place of pairs."""
    declared, passed, i = [], [], 0
    while i < len(parameters):
        name = identifier(parameters[i].name)
        if slice_pair(parameters, i):
            declared.append(f"{name}: &[u8]")
            passed += [f"{name}.as_ptr().cast()", f"{name}.len() as u64"]
            i += 2
            continue
        declared.append(f"{name}: {rust_type(parameters[i].type, known)}")
        passed.append(name)
        i += 1
    return declared, passed


def out_text(result, sized):
    """The memory that an out-parameter is written to. A struct says its size first, as C asks for."""
    if result not in sized:
        return f"    let mut out = MaybeUninit::<{result}>::zeroed();\n"
    return (f"    let mut out = MaybeUninit::<{result}>::zeroed();\n"
            f"    unsafe {{ (*out.as_mut_ptr()).struct_size = size_of::<{result}>() as u32 }};\n")


def sized_structs(model):
    """Names of the structs that begin with their size."""
    return {struct.name for struct in model.structs if struct.fields and struct.fields[0].name == "struct_size"}


def function_text(function, known, sized):
    shape = Shape(function)
    if not shape.has_error or function.name == "shw_get_api":  # the loader's business
        return ""
    declared, passed = parameters_text(shape.parameters, known)
    result = rust_type(shape.out.type[2:], known) if shape.out else "()"
    name = identifier(function.name.removeprefix("shw_"))
    lines = [doc_lines(function.doc) + "/// # Safety\n/// As in C: pointers are valid for the call.\n",
             f"pub unsafe fn {name}({', '.join(declared)}) -> Result<{result}, RawError> {{\n"]
    if shape.out:
        lines.append(out_text(result, sized))
        passed.append("out.as_mut_ptr()")
    lines.append("    let mut err = core::ptr::null_mut();\n")
    lines.append(f"    let status = unsafe {{ ffi::{identifier(function.name)}({', '.join(passed + ['&mut err'])}) }};\n")
    lines.append("    RawError::check(status, err)?;\n")
    lines.append("    Ok(unsafe { out.assume_init() })\n}\n\n" if shape.out else "    Ok(())\n}\n\n")
    return "".join(lines)


def raw(model):
    known, sized = known_names(model), sized_structs(model)
    head = ("use super::ffi::{self, *};\nuse crate::error::RawError;\nuse core::ffi::{c_char, c_void};\n"
            "use core::mem::MaybeUninit;\n\n")
    return HEAD + head + "".join(function_text(f, known, sized) for f in model.functions)
