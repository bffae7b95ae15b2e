// SPDX-License-Identifier: Apache-2.0
//
// An entry is read once; what its repeats change (names, parts of a mesh) is made per combination.
#include "core/job_description/entry_reader_internal.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright::job_description::internal {
namespace {

constexpr std::string_view kTensorKeys[] = {"name",  "dtype",      "shape",     "kind",
                                            "mesh",  "placements", "at",        "ranks",
                                            "boxes", "repeat",     "tensor_map"};
constexpr std::string_view kObjectKeys[] = {"name", "bytes", "kind",  "mesh",
                                            "at",   "ranks", "repeat"};
constexpr std::string_view kRuleKeys[] = {"match", "kind",  "mesh",      "placements",
                                          "at",    "ranks", "tensor_map"};
constexpr std::string_view kRepeatKeys[] = {"from", "count"};
constexpr std::string_view kBoxKeys[] = {"offsets", "sizes", "ranks"};
constexpr size_t kMaxRepeatedBoxes = 4096;
constexpr int64_t kMaxRepeatValue = int64_t{1} << 40;

Result<JsonValueView> needed(JsonValueView object, std::string_view key, std::string_view noun) {
  const JsonValueView member = object.member(key);
  if (member.exists()) return member;
  return object.wrong(fmt::format("{} needs '{}'", noun, key));
}

Result<EntryKind> read_kind(JsonValueView entry, EntryKind otherwise) {
  const JsonValueView value = entry.member("kind");
  if (!value.exists()) return otherwise;
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kText, "'kind'"));
  for (const EntryKind kind :
       {EntryKind::kReplicated, EntryKind::kSharded, EntryKind::kRankLocal}) {
    if (value.text() == entry_kind_name(kind)) return kind;
  }
  return value.wrong(fmt::format("'{}' is no kind; kinds are replicated, sharded and rank_local",
                                 escape_text(value.text())));
}

Result<std::vector<int64_t>> read_extents(JsonValueView value, std::string_view noun) {
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kArray, noun));
  if (value.size() > static_cast<size_t>(kMaxTensorRank))
    return value.wrong(fmt::format("{} has more than {} dimensions", noun, kMaxTensorRank));
  std::vector<int64_t> extents;
  for (JsonValueView at = value.first(); at.exists(); at = at.next()) {
    SHW_ASSIGN_OR_RETURN(const int64_t extent, read_integer(at, noun, 0, INT64_MAX));
    extents.push_back(extent);
  }
  return extents;
}

Result<DType> read_dtype(JsonValueView entry) {
  SHW_ASSIGN_OR_RETURN(const JsonValueView value, needed(entry, "dtype", "a tensor"));
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kText, "'dtype'"));
  const std::optional<DType> dtype = dtype_from_name(value.text());
  if (dtype.has_value()) return *dtype;
  std::vector<std::string_view> names;
  for (int32_t i = 1; i < kDTypeCount; ++i) names.push_back(dtype_name(static_cast<DType>(i)));
  const std::vector<std::string> nearest = nearest_names(value.text(), names, kNearestNames);
  return value.wrong(fmt::format("'{}' is no dtype; nearest: {}", escape_text(value.text()),
                                 fmt::join(nearest, ", ")));
}

Result<Dims> read_shape(JsonValueView entry, DType dtype) {
  SHW_ASSIGN_OR_RETURN(const JsonValueView value, needed(entry, "shape", "a tensor"));
  SHW_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, read_extents(value, "'shape'"));
  const Result<int64_t> elements = checked_element_count(extents);
  if (!elements.ok()) return value.wrong(elements.status().message());
  const Result<uint64_t> bytes = dtype_packed_bytes(dtype, *elements);
  if (!bytes.ok()) return value.wrong(bytes.status().message());
  return Dims(extents);
}

// Ranks that hold a box of the tensor, ascending, each once.
std::vector<int32_t> box_ranks(const JobTensor& tensor) {
  std::vector<int32_t> ranks;
  for (const HeldBox& held : tensor.boxes)
    ranks.insert(ranks.end(), held.ranks.begin(), held.ranks.end());
  std::ranges::sort(ranks);
  const auto rest = std::ranges::unique(ranks);
  ranks.erase(rest.begin(), rest.end());
  return ranks;
}

bool is_split(JsonValueView entry) {
  return entry.member("placements").exists() || entry.member("tensor_map").exists();
}

Status check_not_both(JsonValueView entry, std::string_view one, std::string_view other) {
  const JsonValueView found = entry.member(other);
  if (!found.exists() || !entry.member(one).exists()) return {};
  return found.wrong_key(fmt::format("'{}' cannot stand beside '{}'", other, one));
}

}  // namespace

Result<NameTemplate> NameTemplate::read(JsonValueView name,
                                        std::span<const RepeatVariable> variables) {
  SHW_RETURN_IF_ERROR(need_type(name, JsonType::kText, "'name'"));
  const std::string_view text = name.text();
  if (text.empty()) return name.wrong("a name has at least one character");
  NameTemplate made;
  std::vector<bool> used(variables.size(), false);
  made.parts_.emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (variables.empty() || (c != '{' && c != '}')) {
      made.parts_.back().text += c;
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      made.parts_.back().text += c;
      ++i;
    } else {
      const size_t end = c == '{' ? text.find('}', i) : std::string_view::npos;
      if (end == std::string_view::npos)
        return name.wrong("a brace stands alone; write it twice to mean itself");
      const auto variable =
          std::ranges::find(variables, text.substr(i + 1, end - i - 1), &RepeatVariable::name);
      if (variable == variables.end()) {
        return name.wrong(fmt::format("'{}' is no variable of 'repeat'",
                                      escape_text(text.substr(i + 1, end - i - 1))));
      }
      made.parts_.back().variable = variable - variables.begin();
      used[static_cast<size_t>(variable - variables.begin())] = true;
      made.parts_.emplace_back();
      i = end;
    }
  }
  const auto unused = std::ranges::find(used, false);
  if (unused != used.end()) {
    return name.wrong(fmt::format("the name does not use the variable '{}', so names would repeat",
                                  variables[static_cast<size_t>(unused - used.begin())].name));
  }
  return made;
}

std::string NameTemplate::name_for(std::span<const int64_t> values) const {
  std::string name;
  for (const Part& part : parts_) {
    name += part.text;
    if (part.variable >= 0) name += fmt::to_string(values[static_cast<size_t>(part.variable)]);
  }
  return name;
}

Result<std::vector<RepeatVariable>> EntryReader::read_repeat(JsonValueView entry) const {
  std::vector<RepeatVariable> variables;
  const JsonValueView repeat = entry.member("repeat");
  if (!repeat.exists()) return variables;
  SHW_RETURN_IF_ERROR(need_type(repeat, JsonType::kObject, "'repeat'"));
  if (repeat.size() > kMaxRepeatVariables)
    return repeat.wrong(fmt::format("more than {} variables", kMaxRepeatVariables));
  size_t combinations = 1;
  for (JsonValueView at = repeat.first(); at.exists(); at = at.next()) {
    RepeatVariable variable;
    variable.name = at.key();
    if (variable.name.empty() || variable.name.find_first_of("{}") != std::string::npos)
      return at.wrong_key("a variable has a name without braces");
    JsonValueView count = at;
    if (at.type() == JsonType::kObject) {
      SHW_RETURN_IF_ERROR(at.check_keys("a repeat", kRepeatKeys));
      SHW_ASSIGN_OR_RETURN(count, needed(at, "count", "a repeat"));
      const JsonValueView from = at.member("from");
      if (from.exists()) {
        SHW_ASSIGN_OR_RETURN(variable.first, read_integer(from, "'from'", 0, kMaxRepeatValue));
      }
    }
    SHW_ASSIGN_OR_RETURN(variable.count,
                         read_integer(count, "a count", 1, static_cast<int64_t>(kMaxJobTensors)));
    combinations *= static_cast<size_t>(variable.count);
    if (combinations > kMaxJobTensors)
      return repeat.wrong(fmt::format("this repeats more than {} times", kMaxJobTensors));
    variables.push_back(std::move(variable));
  }
  return variables;
}

Result<std::vector<EntryReader::At>> EntryReader::read_at(
    JsonValueView entry, const NamedMesh& mesh, std::span<const RepeatVariable> variables) const {
  std::vector<At> places;
  const JsonValueView value = entry.member("at");
  if (!value.exists()) return places;
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kObject, "'at'"));
  for (JsonValueView at = value.first(); at.exists(); at = at.next()) {
    const auto axis = std::ranges::find(mesh.axes, at.key());
    if (axis == mesh.axes.end()) {
      return at.wrong_key(fmt::format("the mesh has no axis '{}'; its axes are {}",
                                      escape_text(at.key()), fmt::join(mesh.axes, ", ")));
    }
    At place;
    place.axis = static_cast<size_t>(axis - mesh.axes.begin());
    if (at.type() == JsonType::kText) {
      const auto variable = std::ranges::find(variables, at.text(), &RepeatVariable::name);
      if (variable == variables.end())
        return at.wrong(fmt::format("'{}' is no variable of 'repeat'", escape_text(at.text())));
      place.variable = variable - variables.begin();
    } else {
      SHW_ASSIGN_OR_RETURN(place.coordinate,
                           read_integer(at, "a coordinate", 0, mesh.shape[place.axis] - 1));
    }
    places.push_back(place);
  }
  return places;
}

Result<EntryReader::LayoutFor> EntryReader::read_where(JsonValueView entry,
                                                       std::span<const RepeatVariable> variables,
                                                       int64_t dimension_count) {
  SHW_RETURN_IF_ERROR(check_not_both(entry, "ranks", "mesh"));
  SHW_RETURN_IF_ERROR(check_not_both(entry, "ranks", "placements"));
  SHW_RETURN_IF_ERROR(check_not_both(entry, "ranks", "tensor_map"));
  SHW_RETURN_IF_ERROR(check_not_both(entry, "placements", "tensor_map"));
  SHW_RETURN_IF_ERROR(check_not_both(entry, "ranks", "at"));
  const JsonValueView listed = entry.member("ranks");
  if (listed.exists()) {
    SHW_ASSIGN_OR_RETURN(std::vector<int32_t> ranks, read_ranks(listed));
    SHW_ASSIGN_OR_RETURN(const uint32_t layout, meshes_->layout_of_ranks(listed, std::move(ranks)));
    return LayoutFor([layout](std::span<const int64_t>) { return layout; });
  }
  const bool on_mesh =
      entry.member("mesh").exists() || is_split(entry) || entry.member("at").exists();
  if (!on_mesh) {
    SHW_ASSIGN_OR_RETURN(const uint32_t layout, meshes_->layout_of_all_ranks(entry));
    return LayoutFor([layout](std::span<const int64_t>) { return layout; });
  }
  SHW_ASSIGN_OR_RETURN(const NamedMesh* mesh, meshes_->mesh_of(entry));
  SHW_ASSIGN_OR_RETURN(const std::vector<At> places, read_at(entry, *mesh, variables));
  auto known = std::make_shared<std::map<FixedAxes, uint32_t>>();  // co-owned by copies of the call
  return LayoutFor([this, entry, mesh, places, dimension_count, known,
                    repeats = std::vector<RepeatVariable>(variables.begin(), variables.end())](
                       std::span<const int64_t> values) -> Result<uint32_t> {
    FixedAxes fixed(mesh->axes.size(), -1);
    for (const At& place : places) {
      fixed[place.axis] = place.coordinate;
      if (place.variable < 0) continue;
      const auto variable = static_cast<size_t>(place.variable);
      // Runs of equal length in order, the first ones longer by one when it does not divide.
      fixed[place.axis] = (values[variable] - repeats[variable].first) * mesh->shape[place.axis] /
                          repeats[variable].count;
    }
    const auto found = known->find(fixed);
    if (found != known->end()) return found->second;
    SHW_ASSIGN_OR_RETURN(const uint32_t layout,
                         meshes_->layout_of(entry, *mesh, fixed, dimension_count));
    known->emplace(std::move(fixed), layout);
    return layout;
  });
}

Result<std::vector<HeldBox>> EntryReader::read_boxes(JsonValueView boxes,
                                                     std::span<const int64_t> shape) {
  SHW_RETURN_IF_ERROR(need_type(boxes, JsonType::kArray, "'boxes'"));
  std::vector<HeldBox> made;
  for (JsonValueView at = boxes.first(); at.exists(); at = at.next()) {
    SHW_RETURN_IF_ERROR(need_type(at, JsonType::kObject, "a box"));
    SHW_RETURN_IF_ERROR(at.check_keys("a box", kBoxKeys));
    SHW_ASSIGN_OR_RETURN(const JsonValueView offsets, needed(at, "offsets", "a box"));
    SHW_ASSIGN_OR_RETURN(const JsonValueView sizes, needed(at, "sizes", "a box"));
    SHW_ASSIGN_OR_RETURN(const JsonValueView ranks, needed(at, "ranks", "a box"));
    HeldBox held;
    SHW_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, read_extents(offsets, "'offsets'"));
    SHW_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, read_extents(sizes, "'sizes'"));
    const Status inside = check_box(starts, extents, shape);
    if (!inside.ok()) return at.wrong(inside.message());
    held.box = {Dims(starts), Dims(extents)};
    SHW_ASSIGN_OR_RETURN(held.ranks, read_ranks(ranks));
    std::ranges::sort(held.ranks);
    const auto twice = std::ranges::adjacent_find(held.ranks);
    if (twice != held.ranks.end())
      return ranks.wrong(fmt::format("rank {} is listed twice", *twice));
    SHW_RETURN_IF_ERROR(meshes_->note_ranks(ranks, held.ranks));
    made.push_back(std::move(held));
  }
  return made;
}

Status EntryReader::repeat(JsonValueView entry,
                           const std::function<Status(std::string, std::span<const int64_t>)>& make,
                           std::span<const RepeatVariable> variables) {
  SHW_ASSIGN_OR_RETURN(const JsonValueView name, needed(entry, "name", "an entry"));
  SHW_ASSIGN_OR_RETURN(const NameTemplate names, NameTemplate::read(name, variables));
  std::vector<int64_t> values;
  for (const RepeatVariable& variable : variables) values.push_back(variable.first);
  while (true) {
    std::string made = names.name_for(values);
    if (made.size() > kMaxNameBytes)
      return name.wrong(fmt::format("a name has more than {} bytes", kMaxNameBytes));
    name_bytes_ += made.size();
    if (job_->tensors.size() + job_->objects.size() >= kMaxJobTensors ||
        name_bytes_ > kMaxJobNameBytes) {
      return name.wrong(fmt::format("the description has more than {} entries or {} bytes of names",
                                    kMaxJobTensors, kMaxJobNameBytes));
    }
    SHW_RETURN_IF_ERROR(make(std::move(made), values));
    size_t at = values.size();
    while (at > 0 && ++values[at - 1] == variables[at - 1].first + variables[at - 1].count) {
      values[at - 1] = variables[at - 1].first;
      --at;
    }
    if (at == 0) return {};
  }
}

Status EntryReader::read_tensor(JsonValueView entry) {
  SHW_RETURN_IF_ERROR(need_type(entry, JsonType::kObject, "a tensor"));
  SHW_RETURN_IF_ERROR(entry.check_keys("a tensor", kTensorKeys));
  JobTensor tensor;
  SHW_ASSIGN_OR_RETURN(tensor.dtype, read_dtype(entry));
  SHW_ASSIGN_OR_RETURN(tensor.shape, read_shape(entry, tensor.dtype));
  SHW_ASSIGN_OR_RETURN(const std::vector<RepeatVariable> variables, read_repeat(entry));
  const JsonValueView boxes = entry.member("boxes");
  LayoutFor layout_for;
  if (boxes.exists()) {
    for (const std::string_view other : {"mesh", "placements", "tensor_map", "at", "ranks"})
      SHW_RETURN_IF_ERROR(check_not_both(entry, "boxes", other));
    SHW_ASSIGN_OR_RETURN(tensor.boxes, read_boxes(boxes, tensor.shape));
    if (!variables.empty() && tensor.boxes.size() > kMaxRepeatedBoxes)
      return boxes.wrong(fmt::format("more than {} boxes are not repeated", kMaxRepeatedBoxes));
  } else {
    SHW_ASSIGN_OR_RETURN(layout_for,
                         read_where(entry, variables, static_cast<int64_t>(tensor.shape.size())));
  }
  const bool split = boxes.exists() || is_split(entry);
  SHW_ASSIGN_OR_RETURN(tensor.kind,
                       read_kind(entry, split ? EntryKind::kSharded : EntryKind::kReplicated));
  if (split && tensor.kind != EntryKind::kSharded) {
    return entry.member("kind").wrong(
        fmt::format("a {} tensor is whole on each rank; it has no boxes and no placements",
                    entry_kind_name(tensor.kind)));
  }
  size_t listed_ranks = 0;
  for (const HeldBox& box : tensor.boxes) listed_ranks += box.ranks.size();
  return repeat(
      entry,
      [&](std::string name, std::span<const int64_t> values) -> Status {
        JobTensor made = tensor;
        made.name = std::move(name);
        if (boxes.exists()) {
          SHW_RETURN_IF_ERROR(meshes_->spend(boxes, listed_ranks));
        } else {
          SHW_ASSIGN_OR_RETURN(made.layout, layout_for(values));
        }
        job_->tensors.push_back(std::move(made));
        tensor_origins_.push_back(entry);
        return {};
      },
      variables);
}

Status EntryReader::read_object(JsonValueView entry) {
  SHW_RETURN_IF_ERROR(need_type(entry, JsonType::kObject, "an object"));
  SHW_RETURN_IF_ERROR(entry.check_keys("an object", kObjectKeys));
  JobObject object;
  SHW_ASSIGN_OR_RETURN(const JsonValueView size, needed(entry, "bytes", "an object"));
  SHW_ASSIGN_OR_RETURN(const int64_t bytes,
                       read_integer(size, "'bytes'", 0, static_cast<int64_t>(kMaxObjectBytes)));
  object.size_bytes = static_cast<uint64_t>(bytes);
  SHW_ASSIGN_OR_RETURN(object.kind, read_kind(entry, EntryKind::kReplicated));
  if (object.kind == EntryKind::kSharded)
    return entry.member("kind").wrong("an object is replicated or rank_local");
  SHW_ASSIGN_OR_RETURN(const std::vector<RepeatVariable> variables, read_repeat(entry));
  SHW_ASSIGN_OR_RETURN(const LayoutFor layout_for, read_where(entry, variables, 0));
  return repeat(
      entry,
      [&](std::string name, std::span<const int64_t> values) -> Status {
        JobObject made = object;
        made.name = std::move(name);
        SHW_ASSIGN_OR_RETURN(made.layout, layout_for(values));
        job_->objects.push_back(std::move(made));
        object_origins_.push_back(entry);
        return {};
      },
      variables);
}

Status EntryReader::read_rule(JsonValueView entry) {
  SHW_RETURN_IF_ERROR(need_type(entry, JsonType::kObject, "a rule"));
  SHW_RETURN_IF_ERROR(entry.check_keys("a rule", kRuleKeys));
  JobRule rule;
  SHW_ASSIGN_OR_RETURN(const JsonValueView match, needed(entry, "match", "a rule"));
  SHW_RETURN_IF_ERROR(need_type(match, JsonType::kText, "'match'"));
  rule.glob = match.text();
  SHW_ASSIGN_OR_RETURN(const LayoutFor layout_for, read_where(entry, {}, -1));
  SHW_ASSIGN_OR_RETURN(rule.layout, layout_for({}));
  const bool split = is_split(entry);
  SHW_ASSIGN_OR_RETURN(rule.kind,
                       read_kind(entry, split ? EntryKind::kSharded : EntryKind::kReplicated));
  if (split && rule.kind != EntryKind::kSharded)
    return entry.member("kind").wrong("a rule with placements makes sharded tensors");
  job_->rules.push_back(std::move(rule));
  return {};
}

Status EntryReader::read_tensors(JsonValueView tensors) {
  SHW_RETURN_IF_ERROR(need_type(tensors, JsonType::kArray, "'tensors'"));
  for (JsonValueView at = tensors.first(); at.exists(); at = at.next())
    SHW_RETURN_IF_ERROR(read_tensor(at));
  return {};
}

Status EntryReader::read_objects(JsonValueView objects) {
  SHW_RETURN_IF_ERROR(need_type(objects, JsonType::kArray, "'objects'"));
  for (JsonValueView at = objects.first(); at.exists(); at = at.next())
    SHW_RETURN_IF_ERROR(read_object(at));
  return {};
}

Status EntryReader::read_rules(JsonValueView rules) {
  SHW_RETURN_IF_ERROR(need_type(rules, JsonType::kArray, "'rules'"));
  for (JsonValueView at = rules.first(); at.exists(); at = at.next())
    SHW_RETURN_IF_ERROR(read_rule(at));
  return {};
}

Status EntryReader::check_names() const {
  std::vector<Named> all;
  for (size_t t = 0; t < job_->tensors.size(); ++t) {
    const JobTensor& tensor = job_->tensors[t];
    all.push_back({tensor.name, tensor_origins_[t], &tensor, tensor.layout});
  }
  for (size_t i = 0; i < job_->objects.size(); ++i)
    all.push_back({job_->objects[i].name, object_origins_[i], nullptr, job_->objects[i].layout});
  std::ranges::stable_sort(all, {}, &Named::name);
  for (size_t first = 0; first < all.size();) {
    size_t last = first + 1;
    while (last < all.size() && all[last].name == all[first].name) ++last;
    if (last - first > 1)
      SHW_RETURN_IF_ERROR(check_holders(std::span(all).subspan(first, last - first)));
    first = last;
  }
  return {};
}

Status EntryReader::check_holders(std::span<const Named> entries) const {
  std::vector<std::pair<int32_t, size_t>> holders;  // rank, entry
  for (size_t i = 0; i < entries.size(); ++i) {
    if ((entries[i].tensor == nullptr) != (entries[0].tensor == nullptr)) {
      return entries[i].where.wrong(fmt::format("'{}' is the name of a tensor and of an object",
                                                escape_text(entries[i].name)));
    }
    const std::vector<int32_t> ranks = entries[i].layout == kHeldByBoxes
                                           ? box_ranks(*entries[i].tensor)
                                           : layout_ranks(*job_->layouts[entries[i].layout].layout);
    for (const int32_t rank : ranks) holders.emplace_back(rank, i);
    // More holders than ranks: some rank is there twice, and looking further would be long.
    if (std::cmp_greater(holders.size(), job_->rank_count)) break;
  }
  std::ranges::sort(holders);
  const auto twice = std::ranges::adjacent_find(
      holders, [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == holders.end()) return {};
  const Named& second = entries[std::next(twice)->second];
  return second.where.wrong(fmt::format("rank {} already holds another entry named '{}'",
                                        twice->first, escape_text(second.name)));
}

}  // namespace shardwright::job_description::internal
