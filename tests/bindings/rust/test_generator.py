# SPDX-License-Identifier: Apache-2.0
"""The Rust generator: one C declaration per construct, with the Rust text that it gives or the refusal it meets."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "bindings" / "rust" / "generator"
sys.path[:0] = [str(GENERATOR), str(ROOT / "bindings" / "swig")]

import emit  # noqa: E402
import emit_raw  # noqa: E402
from interface_model import Refused, headers_below, read_model  # noqa: E402

PRELUDE = """
typedef int32_t shw_status;
typedef struct shw_error shw_error;
typedef struct shw_thing shw_thing;
struct shw_api { uint32_t struct_size; };
typedef struct shw_api shw_api;
"""


def model_of(tmp_path, declaration):
    """Model of a header that holds the prelude and one declaration."""
    folder = tmp_path / "shardwright"
    folder.mkdir()
    (folder / "one.h").write_text(PRELUDE + declaration + "\n", encoding="ascii")
    interface = tmp_path / "one.i"
    interface.write_text('%module one\n%include <stdint.i>\n%include "shardwright/one.h"\n', encoding="ascii")
    xml = tmp_path / "one.xml"
    subprocess.run(["swig", "-xml", "-xmllite", f"-I{tmp_path}", "-o", str(xml), str(interface)], check=True,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return read_model(str(xml), headers_below(str(tmp_path)))


def ffi_of(tmp_path, declaration):
    return re.sub(r"\s+", " ", emit.ffi(model_of(tmp_path, declaration)))


ACCEPTED = [
    ("int32_t f(void);", "pub fn f() -> i32;"),
    ("void f(uint8_t a, int64_t b);", "pub fn f(a: u8, b: i64);"),
    ("const char* f(const shw_thing* x, uint64_t* size);", "pub fn f(x: *const shw_thing, size: *mut u64) -> *const c_char;"),
    ("shw_status f(const void* data, uint64_t size, shw_thing** out, shw_error** err);",
     "pub fn f(data: *const c_void, size: u64, out: *mut *mut shw_thing, err: *mut *mut shw_error) -> shw_status;"),
    ("void f(const shw_thing* const* all);", "pub fn f(all: *const *const shw_thing);"),
    ("void f(const uint8_t digest[32]);", "pub fn f(digest: *const u8);"),
    ("void f(int32_t type, int32_t self);", "pub fn f(r#type: i32, self_: i32);"),
    ("typedef uint8_t shw_small;", "pub type shw_small = u8;"),
    ("enum { SHW_A = 0, SHW_B = -3 };", "pub const SHW_A: i32 = 0; pub const SHW_B: i32 = -3;"),
    ("#define SHW_FLAG 4", "pub const SHW_FLAG: u64 = 4;"),
    ('#define SHW_NAME "entry"', 'pub const SHW_NAME: &core::ffi::CStr = c"entry";'),
    ("#define SHW_X_SIZE_V1 96", "pub const SHW_X_SIZE_V1: u32 = 96;"),
    ("typedef shw_status (*shw_fn)(void* user, int32_t n);",
     'pub type shw_fn = Option<unsafe extern "C" fn(user: *mut c_void, n: i32) -> shw_status>;'),
    ("typedef struct shw_s { uint32_t struct_size; int64_t at[4]; const char* name; } shw_s;",
     "pub struct shw_s { pub struct_size: u32, pub at: [i64; 4], pub name: *const c_char, }"),
    ("typedef struct shw_v { void (*go)(void* user); } shw_v;",
     'pub struct shw_v { pub go: Option<unsafe extern "C" fn(user: *mut c_void)>, }'),
    ("struct DLThing; void f(struct DLThing* t);", "pub fn f(t: *mut DLThing);"),
]

REFUSED = [
    ("void f(const char* format, ...);", "varargs"),
    ("void f(long x);", "unknown or forbidden type"),
    ("void f(_Bool x);", "unknown or forbidden type"),
    ("void f();", "empty parameter list"),
    ("void f(int32_t);", "no name"),
    ("typedef enum shw_e { SHW_E_A = 0 } shw_e; void f(shw_e e);", "fixed width"),
    ("typedef struct shw_b { uint32_t a : 3; } shw_b;", "bit-field"),
    ("typedef struct shw_n { struct shw_inner { int32_t x; } in; } shw_n;", "nested"),
    ("typedef struct shw_f { int32_t n; int32_t rest[]; } shw_f;", "flexible array"),
    ("extern int32_t shw_data;", "extern data"),
    ("#define SHW_SUM (1 + 2)", "decimal literal"),
    ("void f(void (*go)(void*));", "inline function pointer"),
    ("static inline int32_t f(void) { return 1; }", "inline function"),
]


@pytest.mark.parametrize(("declaration", "expected"), ACCEPTED, ids=[c for c, _ in ACCEPTED])
def test_declaration_becomes(tmp_path, declaration, expected):
    assert expected in ffi_of(tmp_path, declaration)


@pytest.mark.parametrize(("declaration", "reason"), REFUSED, ids=[c for c, _ in REFUSED])
def test_declaration_is_refused(tmp_path, declaration, reason):
    with pytest.raises(Refused, match=reason):
        ffi_of(tmp_path, declaration)


def test_out_parameter_becomes_the_result(tmp_path):
    text = emit_raw.raw(model_of(tmp_path, "shw_status shw_f(const void* data, uint64_t size, shw_thing** out, shw_error** err);"))
    assert "pub unsafe fn f(data: &[u8]) -> Result<*mut shw_thing, RawError>" in text


def test_an_out_struct_says_its_size_before_the_call(tmp_path):
    text = emit_raw.raw(model_of(tmp_path, """
        typedef struct shw_s { uint32_t struct_size; int32_t n; } shw_s;
        typedef struct shw_plain { int32_t n; } shw_plain;
        shw_status shw_f(const shw_thing* x, shw_s* out, shw_error** err);
        shw_status shw_g(const shw_thing* x, shw_plain* out, shw_error** err);"""))
    f, g = (re.sub(r"\s+", " ", text[text.index(f"pub unsafe fn {name}("):]) for name in "fg")
    size, call = "(*out.as_mut_ptr()).struct_size = size_of::<shw_s>() as u32", "ffi::shw_f("
    assert 0 < f.index(size) < f.index(call) and "struct_size" not in g


def test_generated_files_are_up_to_date():
    command = [sys.executable, str(GENERATOR / "generate.py"), "--interface", str(ROOT / "bindings/swig/shardwright.i"),
               "--include", str(ROOT / "include"), "--output", str(ROOT / "bindings/rust/shardwright-sys/src/generated"), "--check"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
