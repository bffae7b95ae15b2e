# SPDX-License-Identifier: Apache-2.0
"""The public face of the Rust crate: no type of the C interface in it, and nothing that cannot grow."""

import re
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).resolve().parents[3] / "bindings" / "rust" / "shardwright" / "src").rglob("*.rs"))
FOREIGN = re.compile(r"\b(ffi|raw|shardwright_sys)::|\bshw_\w+|\b(RawError|c_void|c_char|CStr|CString)\b")


def without_private_types(text):
    """The text without types that are not public, and what belongs to them."""
    for name in re.findall(r"^(?:pub\(crate\) )?struct (\w+)", text, re.M):
        text = re.sub(rf"^(?:pub\(crate\) )?(?:struct|impl) {name}\b.*?(?:^\}}|;)$", "", text, flags=re.M | re.S)
    return text


def public_declarations(text):
    """Heads of functions, fields, constants and aliases that are `pub`, on one line each; and methods of public traits."""
    text = without_private_types(text)
    for head in re.findall(r"^\s*pub (?:const |unsafe )*fn .*?(?=[{;]$|\{ )", text, re.M | re.S):
        yield " ".join(head.split())
    for line in re.findall(r"^\s*pub (?!fn|const fn|unsafe|use|mod|struct|enum|trait|\().*$", text, re.M):
        yield " ".join(line.split("=")[0].split())
    for line in re.findall(r"^pub struct \w+(?:<[^>]*>)?\((.*)\);$", text, re.M):  # tuple structs with public fields
        yield from (field.strip() for field in line.split(",") if field.strip().startswith("pub "))
    for body in re.findall(r"^ *pub trait .*?^ *\}$", text, re.M | re.S):
        yield from (" ".join(head.split()) for head in re.findall(r"^\s*fn .*?(?=[{;]$|\{ )", body, re.M | re.S))


def foreign_declarations(text):
    return [head for head in public_declarations(text) if FOREIGN.search(head)]


def closed_types(text):
    """Public enums and structs of options that a new value or field would break."""
    found = re.findall(r"((?:^ *#\[.*\]\n)*)^ *pub (enum|struct) (\w+|\$name)", text, re.M)
    return [name for attributes, kind, name in found
            if (kind == "enum" or name.endswith("Options") or name == "$name") and "non_exhaustive" not in attributes]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_public_declaration_names_the_c_interface(path):
    assert foreign_declarations(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_enums_and_options_can_grow(path):
    text = path.read_text(encoding="utf-8")
    inside = re.sub(r"^options! \{.*?^\}", "", text, flags=re.M | re.S)  # the macro says it for all
    assert closed_types(inside) == []


def test_foreign_and_closed_ones_are_found():
    text = """
pub struct A(pub ffi::shw_status);
impl A {
    pub fn summary(
        &self,
    ) -> Result<ffi::shw_report_summary> {
        body
    }
    pub(crate) fn handle(&self) -> *mut ffi::shw_state {
}
pub struct B {
    pub text: CString,
    ok: ffi::shw_plan,
}
pub(crate) struct G {
    pub plan: ffi::shw_plan,
}
impl G {
    pub fn new(plan: ffi::shw_plan) -> G {
        G { plan }
    }
}
pub trait C {
    fn get(&self) -> raw::X;
}
#[derive(Debug)]
pub enum D {}
#[non_exhaustive]
pub enum E {}
pub struct FOptions {}
"""
    assert len(foreign_declarations(text)) == 4
    assert closed_types(text) == ["D", "FOptions"]
