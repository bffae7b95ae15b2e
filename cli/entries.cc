// SPDX-License-Identifier: Apache-2.0
#include "cli/entries.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text.h"

namespace shardwright::cli {
namespace {

std::string listed_name(std::string_view name, int32_t rank) {
  return rank < 0 ? std::string(name) : fmt::format("{}@rank-{}", name, rank);
}

template <typename Facts>
const Facts* with_name(const std::vector<Facts>& facts, std::string_view text) {
  const auto listed =
      std::lower_bound(facts.begin(), facts.end(), text,
                       [](const Facts& fact, std::string_view name) { return fact.listed < name; });
  if (listed != facts.end() && listed->listed == text) return &*listed;
  // The bare name of a rank-local entry stands for that of the lowest rank.
  const Facts* best = nullptr;
  for (const Facts& fact : facts) {
    if (fact.name == text && (best == nullptr || fact.rank < best->rank)) best = &fact;
  }
  return best;
}

}  // namespace

std::string kind_name(int32_t kind) {
  switch (kind) {
    case SHW_KIND_REPLICATED:
      return "replicated";
    case SHW_KIND_SHARDED:
      return "sharded";
    case SHW_KIND_RANK_LOCAL:
      return "rank_local";
    default:
      return "auto";
  }
}

std::vector<TensorFacts> list_tensors(const Checkpoint& checkpoint) {
  const uint64_t count = shw_checkpoint_tensor_count(checkpoint.get());
  std::vector<shw_tensor_info> infos(count, shw_tensor_info SHW_TENSOR_INFO_INIT);
  if (count > 0) {
    shw_error* error = nullptr;
    const shw_status status =
        shw_checkpoint_tensor_infos(checkpoint.get(), 0, count, infos.data(), &error);
    require(status, Error(error), "describe the tensors", "");
  }
  std::vector<TensorFacts> tensors;
  tensors.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const shw_tensor_info& info = infos[i];
    TensorFacts facts;
    facts.index = i;
    facts.name = std::string(text_of(shw_checkpoint_tensor_name, checkpoint, i));
    facts.listed = listed_name(facts.name, info.rank);
    facts.dtype = shw_dtype_name(info.dtype);
    facts.type = {info.dtype, shw_dtype_bits(info.dtype)};
    const int64_t* shape = shw_checkpoint_tensor_shape(checkpoint.get(), i);
    if (info.ndim > 0) facts.shape.assign(shape, shape + info.ndim);
    facts.kind = info.kind;
    facts.rank = info.rank;
    facts.bytes = info.byte_size;
    facts.chunks = info.chunk_count;
    tensors.push_back(std::move(facts));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorFacts& a, const TensorFacts& b) { return a.listed < b.listed; });
  return tensors;
}

std::vector<ObjectFacts> list_objects(const Checkpoint& checkpoint) {
  std::vector<ObjectFacts> objects;
  for (uint64_t i = 0; i < shw_checkpoint_object_count(checkpoint.get()); ++i) {
    ObjectFacts facts;
    facts.index = i;
    facts.name = std::string(text_of(shw_checkpoint_object_name, checkpoint, i));
    facts.rank = shw_checkpoint_object_rank(checkpoint.get(), i);
    facts.listed = listed_name(facts.name, facts.rank);
    facts.content_type = std::string(text_of(shw_checkpoint_object_content_type, checkpoint, i));
    facts.bytes = shw_checkpoint_object_size(checkpoint.get(), i);
    objects.push_back(std::move(facts));
  }
  std::sort(objects.begin(), objects.end(),
            [](const ObjectFacts& a, const ObjectFacts& b) { return a.listed < b.listed; });
  return objects;
}

std::vector<TensorFacts> list_tensors(const Checkpoint& checkpoint, std::string_view pattern) {
  std::vector<TensorFacts> tensors = list_tensors(checkpoint);
  std::erase_if(tensors,
                [&](const TensorFacts& tensor) { return !name_matches(pattern, tensor.listed); });
  return tensors;
}

std::vector<std::string> content_digests(const Checkpoint& checkpoint,
                                         const std::vector<uint64_t>& indices, int32_t algorithm,
                                         std::string_view path) {
  if (indices.empty()) return {};
  const Buffer digests = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_checkpoint_digests(checkpoint.get(), indices.data(), indices.size(), algorithm,
                                      out, error);
      },
      "compute the digests", Place::of_checkpoint(path));
  std::vector<std::string> texts;
  texts.reserve(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    texts.emplace_back(static_cast<const char*>(shw_buffer_part_data(digests.get(), i)),
                       shw_buffer_part_size(digests.get(), i));
  }
  return texts;
}

void require_match(const std::string& pattern, std::string_view noun, const std::string& path) {
  if (pattern.empty()) return;
  Failure failure;
  failure.status = SHW_NOT_FOUND;
  failure.what = fmt::format("no {} has a name like '{}'", noun, pattern);
  failure.where = path;
  failure.next = "see the names: shardwright ls " + shell_word(path);
  throw failure;
}

bool name_matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return true;
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

NamedEntry find_entry(const Checkpoint& checkpoint, const std::vector<TensorFacts>& tensors,
                      const std::vector<ObjectFacts>& objects, std::string_view text,
                      std::string_view path) {
  size_t cut = text.size();
  while (true) {
    const std::string_view name = text.substr(0, cut);
    NamedEntry entry{with_name(tensors, name), nullptr, text.substr(cut)};
    if (entry.tensor == nullptr) entry.object = with_name(objects, name);
    if (entry.tensor != nullptr || entry.object != nullptr) return entry;
    if (!text.ends_with(']') || cut == 0) break;
    cut = text.rfind('[', cut - 1);
    if (cut == std::string_view::npos) break;
  }
  // The library knows the nearest names.
  const size_t bracket = text.ends_with(']') ? text.find('[') : std::string_view::npos;
  const std::string_view name = text.substr(0, bracket);
  uint64_t found = 0;
  shw_error* error = nullptr;
  const shw_status status =
      shw_checkpoint_find_tensor(checkpoint.get(), name.data(), name.size(), -1, &found, &error);
  require(status == SHW_OK ? SHW_NOT_FOUND : status, Error(error), "find the entry",
          Place::of_checkpoint(path, text));
  return {};
}

}  // namespace shardwright::cli
