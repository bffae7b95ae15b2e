# SPDX-License-Identifier: Apache-2.0
"""Tables of structs from headers: what each declaration gives, and what is refused with the field's name."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SWIG_FOLDER = ROOT / "bindings" / "swig"
sys.path.insert(0, str(SWIG_FOLDER))

import structs  # noqa: E402
from interface_model import Refused, headers_below, interface_model, read_model  # noqa: E402

PRELUDE = """
typedef struct shw_thing shw_thing;
typedef uint8_t shw_bool;
typedef void (*shw_fn)(void* user);
"""


def fields_of(tmp_path, members):
    """Rows of a struct with these members behind its size, by name."""
    folder = tmp_path / "shardwright"
    folder.mkdir()
    (folder / "one.h").write_text(f"{PRELUDE}typedef struct shw_s {{ uint32_t struct_size; {members} }} shw_s;\n",
                                  encoding="ascii")
    interface, xml = tmp_path / "one.i", tmp_path / "one.xml"
    interface.write_text('%module one\n%include <stdint.i>\n%include "shardwright/one.h"\n', encoding="ascii")
    subprocess.run(["swig", "-xml", "-xmllite", f"-I{tmp_path}", "-o", str(xml), str(interface)], check=True,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    model = read_model(str(xml), headers_below(str(tmp_path)))
    return {row.name: row for row in structs.Marshalled(model.structs[0], model).fields}


@pytest.mark.parametrize(("members", "name", "expected"), [
    ("int32_t kind;", "kind", {"kind": "INT", "width": 4}), ("shw_bool deep;", "deep", {"kind": "UINT", "width": 1}),
    ("const char* path;", "path", {"kind": "TEXT"}), ("shw_thing* thing;", "thing", {"kind": "HANDLE", "handle": "shw_thing"}),
    ("const char* word; uint64_t word_size;", "word", {"kind": "BYTES", "other": "word_size"}),
    ("const char* names; const uint64_t* name_offsets; uint64_t count;", "names",
     {"kind": "ARRAY", "width": 1, "other": "name_offsets", "length": "shw_last_cut(s->name_offsets, (uint64_t)(s->count))"}),
    ("const char* names; const uint64_t* name_offsets; uint64_t count;", "name_offsets",
     {"cuts": 1, "length": "(uint64_t)(s->count) + 1"}),
    ("const char* x_globs; const uint64_t* x_offsets; uint64_t x_count; uint64_t count;", "x_offsets",
     {"cuts": 1, "length": "(uint64_t)(s->x_count) + 1"}),
    ("const int32_t* ranks; uint64_t rank_count; uint64_t count;", "ranks",
     {"kind": "ARRAY", "width": 4, "sign": 1, "length": "s->rank_count"}),
    ("const int64_t* mesh_shape; int32_t mesh_ndim;", "mesh_shape", {"width": 8, "length": "s->mesh_ndim"})])
def test_type_and_name_say_what_a_field_is(tmp_path, members, name, expected):
    row = fields_of(tmp_path, members)[name]
    assert {key: getattr(row, key) for key in expected} == expected


def test_what_a_host_never_sees_has_no_row(tmp_path):
    members = "uint32_t reserved0; const char* word; uint64_t word_size; shw_fn told; void* told_user; int32_t kind;"
    rows = fields_of(tmp_path, members)
    assert list(rows) == ["word", "told_user", "kind"]
    assert (rows["told_user"].kind, rows["told_user"].other, rows["told_user"].handle) == ("CALLBACK", "told", "shw_fn")


@pytest.mark.parametrize(("members", "said"), [
    ("const int64_t* values;", "shw_s.values: no field says how long"), ("void* memory;", "shw_s.memory: p.void has no rule"),
    ("shw_fn told;", "shw_s.told: a callback needs"), ("const shw_thing* const* all; uint64_t count;", "shw_s.all: .* has no rule"),
    ("const char* names; const uint64_t* name_offsets;", "shw_s.name_offsets: no field says how many parts"),
    (" ".join(f"int32_t a{i};" for i in range(33)), "more fields than")])
def test_a_field_without_a_rule_is_refused_by_name(tmp_path, members, said):
    with pytest.raises(Refused, match=said):
        fields_of(tmp_path, members)


def test_every_struct_of_the_headers_has_a_table_or_a_reason():
    model = interface_model("swig", str(SWIG_FOLDER / "shardwright.i"), str(ROOT / "include"))
    tables = {struct.name for struct in structs.marshalled(model)}
    assert tables | structs.BY_HAND.keys() == {struct.name for struct in model.structs}
    assert not tables & structs.BY_HAND.keys()
    spelled = set(structs.LENGTHS) | set(structs.PARTS) | set(structs.WIDTHS)
    assert spelled <= {f"{struct.name}.{field.name}" for struct in model.structs for field in struct.fields}
