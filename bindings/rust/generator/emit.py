# SPDX-License-Identifier: Apache-2.0
"""Writes the generated Rust files: ffi.rs (declarations), table.rs (function table for dlopen), layout.rs (compile-time
checks) and raw.rs (results and slices instead of out-parameters).
"""
from rust_types import callback_type, identifier, rust_type, signature

HEAD = "// SPDX-License-Identifier: Apache-2.0\n// Generated from the C headers by bindings/rust/generator; not edited.\n\n"


def known_names(model):
    return ({n for n, _ in model.handles} | set(model.foreign) | {n for n, _, _ in model.aliases}
            | {s.name for s in model.structs} | {c.name for c in model.callbacks})


def doc_lines(text, indent=""):
    if not text:
        return ""
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in text.strip().splitlines())


def constant_type(constant):
    if constant.from_enum:
        return "i32"
    return "u32" if constant.name.endswith("_SIZE_V1") or "_ABI_" in constant.name else "u64"


def constant_text(constant):
    if isinstance(constant.value, str):
        kind, value = "&core::ffi::CStr", f'c"{constant.value}"'
    else:
        kind, value = constant_type(constant), constant.value
    return doc_lines(constant.doc) + f"pub const {constant.name}: {kind} = {value};\n"


def opaque(name, doc):
    return (doc_lines(doc) + "#[repr(C)]\npub struct " + name
            + " {\n    _data: [u8; 0],\n    _marker: PhantomData<(*mut u8, PhantomPinned)>,\n}\n\n")


def struct_text(struct, known):
    fields = []
    for field in struct.fields:
        kind = callback_type(field.callback, known) if field.callback else field_type(field, known)
        fields.append(f"    pub {identifier(field.name)}: {kind},\n")
    return doc_lines(struct.doc) + f"#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {struct.name} {{\n{''.join(fields)}}}\n\n"


def field_type(field, known):
    """A field whose type is a callback typedef is nullable."""
    return rust_type(field.type, known)


def ffi(model):
    known = known_names(model)
    out = [HEAD, "use super::table::shw_api;\nuse core::ffi::{c_char, c_void};\nuse core::marker::{PhantomData, PhantomPinned};\n\n"]
    out += [opaque(name, doc) for name, doc in model.handles]
    out += [opaque(name, "Defined by DLPack.") for name in model.foreign]
    out += [doc_lines(doc) + f"pub type {name} = {rust_type(base, known)};\n" for name, base, doc in model.aliases]
    out.append("\n")
    out += [constant_text(c) for c in model.constants]
    out.append("\n")
    out += [doc_lines(c.doc) + f"pub type {c.name} = {callback_type(c, known)};\n" for c in model.callbacks]
    out.append("\n")
    out += [struct_text(s, known) for s in model.structs if s.name != "shw_api"]
    out.append('#[cfg(not(feature = "load-dynamic"))]\nunsafe extern "C" {\n')
    out += [doc_lines(f.doc, "    ") + f"    pub fn {identifier(f.name)}{signature(f, known)};\n" for f in model.functions]
    out.append("}\n\n")
    out.append('#[cfg(feature = "load-dynamic")]\npub use dispatch::*;\n\n')
    out.append('/// The same functions through the table, once a library was loaded.\n'
               '#[cfg(feature = "load-dynamic")]\nmod dispatch {\n    use super::*;\n    use crate::loader::table;\n\n')
    out += [dispatch(f, known) for f in model.functions if f.name != "shw_get_api"]
    out.append("}\n")
    return "".join(out)


def dispatch(function, known):
    slot = function.name.removeprefix("shw_")
    names = ", ".join(identifier(p.name) for p in function.parameters)
    doc = doc_lines(function.doc, "    ") or "    /// See the C header.\n"
    return (doc + f"    /// # Safety\n    /// As in C.\n    pub unsafe fn {identifier(function.name)}{signature(function, known)} {{\n"
            f"        unsafe {{ (table().{identifier(slot)}.unwrap_unchecked())({names}) }}\n    }}\n\n")


def table(model):
    known = known_names(model)
    api = next(s for s in model.structs if s.name == "shw_api")
    return HEAD + "use super::ffi::*;\nuse core::ffi::{c_char, c_void};\n\n" + struct_text(api, known)


def layout(model, layouts):
    """layouts: struct name -> {size, align, offsets: {field: offset}} as the C compiler sees them."""
    out = [HEAD, "use super::ffi::*;\nuse super::table::shw_api;\nuse core::mem::{align_of, offset_of, size_of};\n\n"]
    for struct in model.structs:
        facts = layouts[struct.name]
        out.append(f"const _: () = assert!(size_of::<{struct.name}>() == {facts['size']});\n")
        out.append(f"const _: () = assert!(align_of::<{struct.name}>() == {facts['align']});\n")
        out += [f"const _: () = assert!(offset_of!({struct.name}, {identifier(name)}) == {offset});\n"
                for name, offset in facts["offsets"].items()]
    return "".join(out)
