// SPDX-License-Identifier: Apache-2.0
//
// The schemas, as the schema compiler understands them, against the committed list: ids, types,
// required flags, struct sizes and layouts, identifier. A change of the list is a change of the
// format. SHW_UPDATE_GOLDEN=1 writes the list.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <flatbuffers/reflection_generated.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace shardwright::plan::test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string type_text(const reflection::Schema& schema, const reflection::Type& type,
                      reflection::BaseType base) {
  std::string text = reflection::EnumNameBaseType(base);
  if (base == reflection::Vector || base == reflection::Array) {
    const std::string element = type_text(schema, type, type.element());
    return base == reflection::Array ? fmt::format("[{}:{}]", element, type.fixed_length())
                                     : fmt::format("[{}]", element);
  }
  if (base == reflection::Obj) {
    return schema.objects()->Get(static_cast<flatbuffers::uoffset_t>(type.index()))->name()->str();
  }
  if (type.index() >= 0) {
    text +=
        " " + schema.enums()->Get(static_cast<flatbuffers::uoffset_t>(type.index()))->name()->str();
  }
  return text;
}

std::string field_line(const reflection::Schema& schema, const reflection::Object& object,
                       const reflection::Field& field) {
  std::string line =
      fmt::format("  {} {}: {}", object.is_struct() ? field.offset() : field.id(),
                  field.name()->str(), type_text(schema, *field.type(), field.type()->base_type()));
  if (field.default_integer() != 0) line += fmt::format(" = {}", field.default_integer());
  if (field.required()) line += " required";
  if (field.deprecated()) line += " deprecated";
  return line + "\n";
}

std::string object_text(const reflection::Schema& schema, const reflection::Object& object) {
  std::string text = object.is_struct()
                         ? fmt::format("struct {} {} bytes aligned to {}\n", object.name()->str(),
                                       object.bytesize(), object.minalign())
                         : fmt::format("table {}\n", object.name()->str());
  // Reflection sorts fields by name; order them as they lie on the wire.
  std::map<int, std::string> lines;
  for (const reflection::Field* field : *object.fields()) {
    lines[object.is_struct() ? field->offset() : field->id()] = field_line(schema, object, *field);
  }
  for (const auto& [at, line] : lines) text += line;
  return text;
}

// The binary schema as text, one line per field.
std::string schema_text(const std::string& binary) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(binary.data()), binary.size());
  EXPECT_TRUE(reflection::VerifySchemaBuffer(verifier));
  const reflection::Schema& schema = *reflection::GetSchema(binary.data());
  std::string text = fmt::format("identifier {}\nroot {}\n", schema.file_ident()->str(),
                                 schema.root_table()->name()->str());
  for (const reflection::Object* object : *schema.objects()) text += object_text(schema, *object);
  for (const reflection::Enum* each : *schema.enums()) {
    text += fmt::format("enum {} {}\n", each->name()->str(),
                        reflection::EnumNameBaseType(each->underlying_type()->base_type()));
    for (const reflection::EnumVal* value : *each->values()) {
      text += fmt::format("  {} = {}\n", value->name()->str(), value->value());
    }
  }
  return text;
}

TEST(PlanSchema, FieldsAreThoseOfTheCommittedList) {
  const std::string list =
      std::string(std::getenv("SHW_SOURCE_DIR")) + "/tests/core/plan/wire/plan_schema_fields.txt";
  const std::string text = schema_text(read_file(SHW_PLAN_SCHEMA_BINARY));
  if (std::getenv("SHW_UPDATE_GOLDEN") != nullptr) std::ofstream(list, std::ios::binary) << text;
  EXPECT_EQ(text, read_file(list));
}

}  // namespace
}  // namespace shardwright::plan::test
