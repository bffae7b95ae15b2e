// SPDX-License-Identifier: Apache-2.0
//
// Meshes are kept by name, layouts by what they say, so that a thousand entries with one layout
// share it.
#include "core/job_description/mesh_reader_internal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright::job_description::internal {
namespace {

std::string_view type_name(JsonType type) {
  switch (type) {
    case JsonType::kNull:
      return "null";
    case JsonType::kBoolean:
      return "true or false";
    case JsonType::kInteger:
      return "an integer";
    case JsonType::kReal:
      return "a number with a fraction";
    case JsonType::kText:
      return "a text";
    case JsonType::kArray:
      return "a list";
    case JsonType::kObject:
      return "an object";
  }
  return "a value";
}

std::string quoted_list(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", escape_text(name));
  return text;
}

// Reads "(1)" or "(1, 2)" behind the word of a placement.
bool read_numbers(std::string_view text, std::vector<int32_t>* numbers) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  text = text.substr(1, text.size() - 2);
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return false;
    text.remove_prefix(begin);
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    numbers->push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const size_t rest = text.find_first_not_of(' ');
    if (rest == std::string_view::npos) return true;
    if (text[rest] != ',') return false;
    text.remove_prefix(rest + 1);
  }
}

bool parse_placement(std::string_view text, Placement* placement) {
  const size_t bracket = std::min(text.find('('), text.size());
  const std::string_view word = text.substr(0, bracket);
  if (bracket == text.size()) {
    placement->kind = word == "Flat" ? PlacementKind::kFlat : PlacementKind::kReplicate;
    return word == "Flat" || word == "Replicate" || word == "R";
  }
  std::vector<int32_t> numbers;
  if (!read_numbers(text.substr(bracket), &numbers)) {
    return word == "Replicate" && text.substr(bracket) == "()";
  }
  if ((word == "Shard" || word == "S") && numbers.size() == 1) {
    placement->kind = PlacementKind::kShard;
    placement->dim = numbers[0];
    return true;
  }
  if (word == "StridedShard" && numbers.size() == 2) {
    placement->kind = PlacementKind::kStridedShard;
    placement->dim = numbers[0];
    placement->factor = numbers[1];
    return true;
  }
  return false;
}

Result<Placement> read_placement(JsonValueView value) {
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kText, "a placement"));
  Placement placement;
  if (parse_placement(value.text(), &placement)) return placement;
  return value.wrong(fmt::format(
      "'{}' is no placement; write \"Replicate\", \"Shard(dim)\", \"StridedShard(dim, factor)\" or "
      "\"Flat\"",
      escape_text(value.text())));
}

// "dp=8 Shard(0) x tp=4 Replicate"
std::string layout_text(const Mesh& mesh, const std::vector<Placement>& placements) {
  std::string text;
  for (size_t i = 0; i < placements.size(); ++i) {
    text += fmt::format("{}{}={} {}", i == 0 ? "" : " x ", escape_text(mesh.axis_names[i]),
                        mesh.shape[i], placement_text(placements[i]));
  }
  return text;
}

constexpr size_t kMaxListedRanks = size_t{1} << 24;
constexpr std::string_view kMeshKeys[] = {"axes", "ranks"};
constexpr std::string_view kRankKeys[] = {"from", "count", "step"};

}  // namespace

std::string placement_text(const Placement& placement) {
  switch (placement.kind) {
    case PlacementKind::kReplicate:
      return "Replicate";
    case PlacementKind::kShard:
      return fmt::format("Shard({})", placement.dim);
    case PlacementKind::kStridedShard:
      return fmt::format("StridedShard({}, {})", placement.dim, placement.factor);
    case PlacementKind::kPartial:
      return "Partial";
    case PlacementKind::kFlat:
      return "Flat";
  }
  return "";
}

Status need_type(JsonValueView value, JsonType type, std::string_view noun) {
  if (value.type() == type) return {};
  return value.wrong(
      fmt::format("{} must be {}, this is {}", noun, type_name(type), type_name(value.type())));
}

Result<int64_t> read_integer(JsonValueView value, std::string_view noun, int64_t low,
                             int64_t high) {
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kInteger, noun));
  if (value.integer() >= low && value.integer() <= high) return value.integer();
  return value.wrong(
      fmt::format("{} is {}; it must be from {} to {}", noun, value.integer(), low, high));
}

Result<std::vector<int32_t>> read_ranks(JsonValueView value) {
  std::vector<int32_t> ranks;
  if (value.type() == JsonType::kObject) {
    SHW_RETURN_IF_ERROR(value.check_keys("a range of ranks", kRankKeys));
    std::array<int64_t, 3> numbers{0, 0, 1};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const JsonValueView member = value.member(kRankKeys[i]);
      if (!member.exists()) continue;
      SHW_ASSIGN_OR_RETURN(numbers[i],
                           read_integer(member, fmt::format("'{}' of a range", kRankKeys[i]),
                                        i == 0 ? 0 : 1, kMaxWorldSize));
    }
    const auto [from, count, step] = numbers;
    if (count == 0) return value.wrong("a range of ranks needs a 'count'");
    if (from + (count - 1) * step >= kMaxWorldSize)
      return value.wrong(fmt::format("the range passes the highest rank {}", kMaxWorldSize - 1));
    for (int64_t i = 0; i < count; ++i) ranks.push_back(static_cast<int32_t>(from + i * step));
    return ranks;
  }
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kArray, "a list of ranks"));
  if (value.size() == 0) return value.wrong("a list of ranks has at least one");
  for (JsonValueView at = value.first(); at.exists(); at = at.next()) {
    SHW_ASSIGN_OR_RETURN(const int64_t rank, read_integer(at, "a rank", 0, kMaxWorldSize - 1));
    ranks.push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

Status MeshReader::read_meshes(JsonValueView meshes) {
  SHW_RETURN_IF_ERROR(need_type(meshes, JsonType::kObject, "'meshes'"));
  for (JsonValueView at = meshes.first(); at.exists(); at = at.next()) {
    SHW_ASSIGN_OR_RETURN(NamedMesh mesh, read_mesh(at));
    mesh.name = at.key();
    meshes_.push_back(std::move(mesh));
    const NamedMesh& added = meshes_.back();
    int64_t highest = -1;
    if (added.ranks.empty()) {
      highest = element_count_of(added.shape) - 1;
    } else {
      highest = *std::ranges::max_element(added.ranks);
    }
    highest_rank_ = std::max(highest_rank_, static_cast<int32_t>(highest));
  }
  return {};
}

Result<NamedMesh> MeshReader::read_mesh(JsonValueView value) const {
  SHW_RETURN_IF_ERROR(need_type(value, JsonType::kObject, "a mesh"));
  SHW_RETURN_IF_ERROR(value.check_keys("a mesh", kMeshKeys));
  const JsonValueView axes = value.member("axes");
  if (!axes.exists()) return value.wrong("a mesh needs 'axes', such as {\"dp\": 8, \"tp\": 4}");
  SHW_RETURN_IF_ERROR(need_type(axes, JsonType::kObject, "'axes'"));
  if (axes.size() == 0 || axes.size() > static_cast<size_t>(kMaxTensorRank))
    return axes.wrong(fmt::format("a mesh has from 1 to {} axes", kMaxTensorRank));
  NamedMesh mesh;
  std::vector<int64_t> shape;
  int64_t ranks = 1;
  for (JsonValueView at = axes.first(); at.exists(); at = at.next()) {
    SHW_ASSIGN_OR_RETURN(const int64_t extent,
                         read_integer(at, "the extent of an axis", 1, kMaxWorldSize));
    ranks *= extent;
    if (ranks > kMaxWorldSize)
      return at.wrong(fmt::format("the mesh has more than {} ranks", kMaxWorldSize));
    mesh.axes.emplace_back(at.key());
    shape.push_back(extent);
  }
  mesh.shape = Dims(shape);
  const JsonValueView listed = value.member("ranks");
  if (!listed.exists()) return mesh;
  SHW_ASSIGN_OR_RETURN(mesh.ranks, read_ranks(listed));
  if (static_cast<int64_t>(mesh.ranks.size()) != ranks) {
    return listed.wrong(
        fmt::format("{} ranks are listed for a mesh of {}", mesh.ranks.size(), ranks));
  }
  std::vector<int32_t> sorted = mesh.ranks;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return listed.wrong(fmt::format("rank {} is listed twice", *twice));
  return mesh;
}

Result<const NamedMesh*> MeshReader::mesh_of(JsonValueView entry) const {
  const JsonValueView named = entry.member("mesh");
  if (!named.exists()) {
    if (meshes_.size() == 1) return &meshes_[0];
    return entry.wrong(meshes_.empty() ? "there are no 'meshes' that this could be laid out on"
                                       : "there are several meshes; name one with 'mesh'");
  }
  SHW_RETURN_IF_ERROR(need_type(named, JsonType::kText, "'mesh'"));
  const auto found = std::ranges::find(meshes_, named.text(), &NamedMesh::name);
  if (found != meshes_.end()) return &*found;
  std::vector<std::string_view> names;
  names.reserve(meshes_.size());
  for (const NamedMesh& mesh : meshes_) names.push_back(mesh.name);
  const std::vector<std::string> nearest = nearest_names(named.text(), names, kNearestNames);
  return named.wrong(fmt::format("there is no mesh '{}'; nearest: {}", escape_text(named.text()),
                                 quoted_list(nearest)));
}

Result<std::vector<Placement>> MeshReader::read_placements(JsonValueView entry,
                                                           const NamedMesh& mesh,
                                                           const FixedAxes& fixed,
                                                           int64_t dimension_count) const {
  const JsonValueView value = entry.member("placements");
  std::vector<Placement> placements(mesh.axes.size());
  if (!value.exists()) return placements;
  std::vector<JsonValueView> given(mesh.axes.size());
  if (value.type() == JsonType::kObject) {
    for (JsonValueView at = value.first(); at.exists(); at = at.next()) {
      const auto axis = std::ranges::find(mesh.axes, at.key());
      if (axis == mesh.axes.end()) {
        return at.wrong_key(fmt::format("the mesh has no axis '{}'; its axes are {}",
                                        escape_text(at.key()), quoted_list(mesh.axes)));
      }
      given[static_cast<size_t>(axis - mesh.axes.begin())] = at;
    }
  } else {
    SHW_RETURN_IF_ERROR(need_type(value, JsonType::kArray, "'placements'"));
    const auto free = static_cast<size_t>(std::ranges::count(fixed, -1));
    if (value.size() != free) {
      return value.wrong(
          fmt::format("{} placements for {} axes that no 'at' fixes", value.size(), free));
    }
    JsonValueView at = value.first();
    for (size_t i = 0; i < fixed.size(); ++i) {
      if (fixed[i] != -1) continue;
      given[i] = at;
      at = at.next();
    }
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].exists()) continue;
    SHW_ASSIGN_OR_RETURN(placements[i], read_placement(given[i]));
    if (placements[i].kind == PlacementKind::kReplicate) continue;
    if (fixed[i] != -1) {
      return given[i].wrong(
          fmt::format("axis '{}' is fixed by 'at', so nothing can be split over it",
                      escape_text(mesh.axes[i])));
    }
    if (placements[i].kind == PlacementKind::kFlat) continue;
    const int64_t dim = placements[i].dim;
    if (dimension_count >= 0 && (dim >= dimension_count || dim < -dimension_count)) {
      return given[i].wrong(
          fmt::format("dimension {} of a tensor of {} dimensions", dim, dimension_count));
    }
  }
  return placements;
}

std::vector<int32_t> MeshReader::part_ranks(const NamedMesh& mesh, const FixedAxes& fixed) {
  std::vector<int64_t> positions{0};
  int64_t below = element_count_of(mesh.shape);
  for (size_t i = 0; i < fixed.size(); ++i) {
    below /= mesh.shape[i];
    std::vector<int64_t> next;
    for (const int64_t position : positions) {
      const int64_t first = fixed[i] == -1 ? 0 : fixed[i];
      const int64_t end = fixed[i] == -1 ? mesh.shape[i] : fixed[i] + 1;
      for (int64_t at = first; at < end; ++at) next.push_back(position + at * below);
    }
    positions = std::move(next);
  }
  std::vector<int32_t> ranks;
  ranks.reserve(positions.size());
  for (const int64_t position : positions) ranks.push_back(mesh.rank_at(position));
  return ranks;
}

Status MeshReader::spend(JsonValueView where, size_t ranks) {
  spent_ += ranks;
  if (spent_ <= kMaxListedRanks) return {};
  return where.wrong(
      fmt::format("the entries of this description list more than {} ranks", kMaxListedRanks));
}

Result<Mesh> MeshReader::part_of(JsonValueView entry, const NamedMesh& mesh,
                                 const FixedAxes& fixed) {
  Mesh part;
  std::vector<int64_t> shape;
  for (size_t i = 0; i < fixed.size(); ++i) {
    if (fixed[i] != -1) continue;
    shape.push_back(mesh.shape[i]);
    part.axis_names.push_back(mesh.axes[i]);
  }
  const bool all = shape.size() == mesh.axes.size();
  SHW_RETURN_IF_ERROR(
      spend(entry, all ? mesh.ranks.size() : static_cast<size_t>(element_count_of(shape))));
  part.ranks = all ? mesh.ranks : part_ranks(mesh, fixed);
  part.shape = Dims(shape);
  return part;
}

Result<uint32_t> MeshReader::layout_of(JsonValueView entry, const NamedMesh& mesh,
                                       const FixedAxes& fixed, int64_t dimension_count) {
  SHW_ASSIGN_OR_RETURN(Mesh part, part_of(entry, mesh, fixed));
  std::vector<Placement> placements;
  TensorMap map;
  const JsonValueView mapped = entry.member("tensor_map");
  if (mapped.exists()) {
    SHW_ASSIGN_OR_RETURN(map, read_tensor_map(mapped, part.axis_names, dimension_count));
  } else {
    SHW_ASSIGN_OR_RETURN(const std::vector<Placement> all,
                         read_placements(entry, mesh, fixed, dimension_count));
    for (size_t i = 0; i < fixed.size(); ++i) {
      if (fixed[i] == -1) placements.push_back(all[i]);
    }
  }
  if (part.axis_names.empty()) {
    part.shape = Dims{1};
    part.axis_names.emplace_back("rank");
    placements.emplace_back();
  }
  if (mapped.exists()) return keep_mapped(entry, std::move(part), map);
  return keep(entry, std::move(part), placements);
}

Status MeshReader::note_ranks(JsonValueView where, std::span<const int32_t> ranks) {
  for (const int32_t rank : ranks) {
    if (rank < job_->rank_count) continue;
    return where.wrong(
        fmt::format("rank {} is outside a job of {} ranks ('ranks' at the top gives "
                    "their number)",
                    rank, job_->rank_count));
  }
  return spend(where, ranks.size());
}

Result<uint32_t> MeshReader::layout_of_ranks(JsonValueView where, std::vector<int32_t> ranks) {
  SHW_RETURN_IF_ERROR(note_ranks(where, ranks));
  std::ranges::sort(ranks);
  const auto twice = std::ranges::adjacent_find(ranks);
  if (twice != ranks.end()) return where.wrong(fmt::format("rank {} is listed twice", *twice));
  Mesh mesh;
  mesh.shape = Dims{static_cast<int64_t>(ranks.size())};
  mesh.axis_names = {"rank"};
  mesh.ranks = std::move(ranks);
  return keep(where, std::move(mesh), {Placement{}});
}

Result<uint32_t> MeshReader::layout_of_all_ranks(JsonValueView where) {
  Mesh mesh;
  mesh.shape = Dims{job_->rank_count};
  mesh.axis_names = {"rank"};
  return keep(where, std::move(mesh), {Placement{}});
}

Result<uint32_t> MeshReader::keep(JsonValueView where, Mesh mesh,
                                  const std::vector<Placement>& placements) {
  JobLayout made;
  made.text = layout_text(mesh, placements);
  made.json = "[";
  for (size_t i = 0; i < placements.size(); ++i)
    made.json += fmt::format("{}\"{}\"", i == 0 ? "" : ",", placement_text(placements[i]));
  made.json += "]";
  return remember(where, std::move(mesh), std::move(made),
                  [&](Mesh own) { return Layout::create(std::move(own), placements); });
}

Result<uint32_t> MeshReader::keep_mapped(JsonValueView where, Mesh mesh, const TensorMap& map) {
  std::vector<Placement> placements(mesh.shape.size());
  std::string order;  // axes of one dimension that do not cut in the order of the mesh
  for (size_t dim = 0; dim < map.size(); ++dim) {
    for (const int32_t entry : map[dim]) {
      const size_t axis = mesh.shape.size() - 1 - static_cast<size_t>(entry);
      placements[axis] = {PlacementKind::kShard, static_cast<int32_t>(dim), 0};
      order += fmt::format("{}{}", order.empty() ? "" : ", ", escape_text(mesh.axis_names[axis]));
    }
  }
  JobLayout made;
  made.text = layout_text(mesh, placements);
  const auto in_mesh_order = [](const std::vector<int32_t>& entry) {
    return std::ranges::is_sorted(entry, std::greater<>());
  };
  if (!std::ranges::all_of(map, in_mesh_order)) made.text += fmt::format(" (order {})", order);
  made.json_key = "tensor_map";
  made.json = tensor_map_json(map);
  return remember(where, std::move(mesh), std::move(made),
                  [&](Mesh own) { return Layout::create_mapped(std::move(own), map); });
}

Result<uint32_t> MeshReader::remember(JsonValueView where, Mesh mesh, JobLayout made,
                                      const MakeLayout& make) {
  std::string key = made.text + made.json_key + made.json;
  key.append(reinterpret_cast<const char*>(mesh.ranks.data()), mesh.ranks.size() * sizeof(int32_t));
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  Result<std::shared_ptr<const Layout>> layout = make(std::move(mesh));
  if (!layout.ok()) return where.wrong(layout.status().message());
  made.layout = *std::move(layout);
  const auto number = static_cast<uint32_t>(job_->layouts.size());
  job_->layouts.push_back(std::move(made));
  known_.emplace(std::move(key), number);
  return number;
}

}  // namespace shardwright::job_description::internal
