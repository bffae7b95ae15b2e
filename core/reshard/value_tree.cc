// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/value_tree.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/format/archive/pickle_data.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_tensor.h"

namespace shardwright::reshard {
namespace {

using Json = nlohmann::ordered_json;
namespace archive = format::archive;

constexpr size_t kMaxDepth = 64;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A dict with other than text keys: [[key, value], ...], integers and texts among them.
bool is_plain_map(const Json& json) {
  return json.is_array() && std::ranges::all_of(json, [](const Json& pair) {
           return pair.is_array() && pair.size() == 2 &&
                  (pair[0].is_number_integer() || pair[0].is_string());
         });
}

// Depth is bounded. NOLINTNEXTLINE(misc-no-recursion)
Value convert(const Json& json, size_t depth) {
  if (depth == kMaxDepth) return Value::leaf(dump(json));
  if (json.is_array() && !json.empty()) {
    Value list = Value::list();
    for (const Json& each : json) list.append(convert(each, depth + 1));
    return list;
  }
  if (!json.is_object() || json.empty()) return Value::leaf(dump(json));
  if (json.size() == 1 && json.begin().key() == "$map" && is_plain_map(json["$map"]) &&
      !json["$map"].empty()) {
    Value dict = Value::dict();
    for (const Json& pair : json["$map"]) {
      if (pair[0].is_string()) {
        dict.set(pair[0].get<std::string>(), convert(pair[1], depth + 1));
      } else {
        dict.set(pair[0].get<int64_t>(), convert(pair[1], depth + 1));
      }
    }
    return dict;
  }
  if (json.begin().key().starts_with("$")) return Value::leaf(dump(json));
  Value dict = Value::dict();
  for (const auto& [key, value] : json.items()) dict.set(key, convert(value, depth + 1));
  return dict;
}

// A pickle taken apart at its dicts and lists.
class PickleParts {
 public:
  explicit PickleParts(const archive::PickleData& data) : data_(data) {}

  // Depth is bounded. NOLINTNEXTLINE(misc-no-recursion)
  Result<Value> convert(archive::PickleRef ref, size_t depth) {
    if (depth < kMaxDepth && data_.kind(ref) == archive::PickleKind::kList &&
        data_.part_count(ref) > 0) {
      Value list = Value::list();
      archive::PickleCursor parts = data_.parts(ref);
      for (archive::PickleRef part; parts.next(&part);) {
        SHW_ASSIGN_OR_RETURN(Value value, convert(part, depth + 1));
        list.append(std::move(value));
      }
      return list;
    }
    if (depth < kMaxDepth && data_.kind(ref) == archive::PickleKind::kDict &&
        data_.part_count(ref) > 0 && has_plain_keys(ref))
      return convert_dict(ref, depth);
    const archive::ExportedValue value = archive::export_value(data_, ref, &budget_);
    if (value.content_type == archive::kOpaqueType)
      return unimplemented(fmt::format("a value that cannot be stored by itself: {}", value.bytes));
    Value leaf = Value::leaf(value.bytes);
    if (value.content_type != archive::kJsonType) leaf.type = value.content_type;
    return leaf;
  }

 private:
  bool has_plain_keys(archive::PickleRef ref) const {
    archive::PickleCursor pairs = data_.pairs(ref);
    for (archive::PickleRef key, value; pairs.next(&key) && pairs.next(&value);) {
      const archive::PickleKind kind = data_.kind(key);
      if (kind != archive::PickleKind::kText && kind != archive::PickleKind::kInteger) return false;
    }
    return true;
  }
  // NOLINTNEXTLINE(misc-no-recursion)
  Result<Value> convert_dict(archive::PickleRef ref, size_t depth) {
    Value dict = Value::dict();
    archive::PickleCursor pairs = data_.pairs(ref);
    for (archive::PickleRef key, part; pairs.next(&key) && pairs.next(&part);) {
      SHW_ASSIGN_OR_RETURN(Value value, convert(part, depth + 1));
      if (data_.kind(key) == archive::PickleKind::kText) {
        dict.set(data_.text(key), std::move(value));
      } else {
        dict.set(data_.integer(key), std::move(value));
      }
    }
    return dict;
  }

  const archive::PickleData& data_;
  uint64_t budget_ = uint64_t{64} << 20;
};

Value& child(Value* parent, const PathPart& part) {
  if (part.kind == PathPartKind::kPosition) {
    parent->kind = Value::Kind::kList;
  } else if (parent->members.empty()) {
    parent->kind = Value::Kind::kDict;
  }
  for (auto& [key, value] : parent->members) {
    if (key == part) return value;
  }
  return parent->members.emplace_back(part, Value()).second;
}

// Depth is that of paths. NOLINTNEXTLINE(misc-no-recursion)
void add_below(const Value& value, std::vector<PathPart>* path,
               std::vector<exec::ViewObject>* objects) {
  if (value.kind != Value::Kind::kLeaf && !value.members.empty()) {
    for (const auto& [part, member] : value.members) {
      path->push_back(part);
      add_below(member, path, objects);
      path->pop_back();
    }
    return;
  }
  exec::ViewObject object;
  object.name = join_path(*path);
  object.path = format_path(*path);
  object.object = value.object;
  if (value.object == exec::ViewObject::kOwnBytes) {
    object.content_type = value.type.empty() ? archive::kJsonType : std::string_view(value.type);
    std::string json = value.json;
    if (value.kind == Value::Kind::kDict) json = "{}";
    if (value.kind == Value::Kind::kList) json = "[]";
    const auto bytes = std::as_bytes(std::span(json));
    object.bytes.assign(bytes.begin(), bytes.end());
  }
  objects->push_back(std::move(object));
}

}  // namespace

Value Value::leaf(std::string json) {
  Value value;
  value.json = std::move(json);
  return value;
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [part, value] : members) {
    if (part.kind == PathPartKind::kText && part.text == key) return &value;
  }
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));  // NOLINT: of an object that is not
}

void Value::set(std::string_view key, Value value) {
  child(this, {PathPartKind::kText, std::string(key)}) = std::move(value);
}

void Value::set(int64_t key, Value value) {
  child(this, {PathPartKind::kInteger, std::to_string(key)}) = std::move(value);
}

void Value::append(Value value) {
  members.emplace_back(PathPart{PathPartKind::kPosition, std::to_string(members.size())},
                       std::move(value));
}

Result<Value> value_of_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return invalid_argument("it is no JSON");
  return convert(json, 0);
}

// Depth is that of the value. NOLINTNEXTLINE(misc-no-recursion)
Result<std::string> json_of_value(const Value& value) {
  if (value.kind == Value::Kind::kLeaf) {
    if (value.type.empty() && value.object == exec::ViewObject::kOwnBytes) return value.json;
    return unimplemented("a value that JSON does not say");
  }
  const bool is_list = value.kind == Value::Kind::kList;
  const bool is_map = !is_list && std::ranges::any_of(value.members, [](const auto& member) {
    return member.first.kind != PathPartKind::kText || member.first.text.starts_with('$');
  });
  std::string json = is_list ? "[" : is_map ? "{\"$map\": [" : "{";
  for (const auto& [part, member] : value.members) {
    if (&member != &value.members.front().second) json += ", ";
    SHW_ASSIGN_OR_RETURN(const std::string inner, json_of_value(member));
    const std::string key = part.kind == PathPartKind::kText ? dump(Json(part.text)) : part.text;
    if (is_list) {
      json += inner;
    } else {
      json += is_map ? fmt::format("[{}, {}]", key, inner) : fmt::format("{}: {}", key, inner);
    }
  }
  return json + (is_list ? "]" : is_map ? "]}" : "}");
}

Result<Value> value_of_pickle(std::span<const std::byte> bytes) {
  archive::PickleOptions options;
  options.file = "a nested value";
  options.vocabulary = archive::torch_vocabulary();
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(bytes, options));
  return PickleParts(data).convert(data.root(), 0);
}

Result<Value> value_below(const exec::Checkpoint& source, const std::vector<PathPart>& prefix) {
  const plan::Catalog& catalog = source.catalog();
  const std::string name = join_path(prefix);
  Value root;
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    if (!catalog.object_name(i).starts_with(name)) continue;
    const std::string_view text = catalog.texts.at(catalog.objects[i].path);
    if (text.empty()) continue;
    SHW_ASSIGN_OR_RETURN(const std::vector<PathPart> parts, parse_path(text));
    if (parts.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), parts.begin()))
      continue;
    Value* at = &root;
    for (size_t p = prefix.size(); p < parts.size(); ++p) at = &child(at, parts[p]);
    at->object = i;
    if (catalog.texts.at(catalog.objects[i].content_type) != archive::kJsonType) continue;
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, source.read_object(i, {}));
    at->json.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    at->object = exec::ViewObject::kOwnBytes;
  }
  return root;
}

void add_entries(const Value& value, const std::vector<PathPart>& path,
                 std::vector<exec::ViewObject>* objects) {
  std::vector<PathPart> at = path;
  add_below(value, &at, objects);
}

}  // namespace shardwright::reshard
