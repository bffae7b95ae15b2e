// SPDX-License-Identifier: Apache-2.0
//
// The pickle is copied value by value, pairs of the mappings of Metadata left out: by name those
// of tensors, objects and paths, by "fqn" those of places. What comes out is read again and
// compared with what went in, so that nothing else is lost whatever somebody put into an index.
// Megatron's plans of ranks go: a job that finds its own plans there takes the rest of the index
// for that of its next save, and what was removed would be missing there.
#include "core/format/torch_dcp/index_without.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/rank_local_names.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr int kDepthOfAttributes = 1;  // Metadata, its state
constexpr int kDepthOfMappings = 2;    // and one of those

using Names = std::set<std::string, std::less<>>;

const Names& plans_of_ranks() {
  static const Names kNames = {"all_local_plans"};
  return kNames;
}

// As it stands in the index.
template <typename Entry>
std::string key_of_entry(const Entry& entry) {
  return entry.rank < 0 ? entry.name : rank_local_key(entry.name, entry.rank);
}

Status cannot_be_written(std::string_view why) {
  return unimplemented(fmt::format("file '{}' cannot be written again without some entries: {}",
                                   kIndexName, why))
      .with_detail("file", kIndexName);
}

Result<std::string> copy_without(std::span<const std::byte> index, const Names& left_out) {
  archive::PickleOptions options;
  options.file = kIndexName;
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(index, options));
  archive::PickleCopyRules rules;
  rules.newer_names = false;
  const archive::PickleCopyRules::LeftOut both[] = {{left_out, kDepthOfMappings},
                                                    {plans_of_ranks(), kDepthOfAttributes}};
  rules.left_out = both;
  archive::PickleCopy copy = archive::copy_pickle(data, data.root(), rules);
  if (!copy.is_whole) return cannot_be_written("it holds itself");
  return std::move(copy.bytes);
}

// Takes an index apart in what goes and what stays.
class Parting {
 public:
  Parting(const DcpIndex& index, const EntryNameRule& goes) : index_(index) {
    for (const DcpIndex::Tensor& tensor : index.tensors) {
      uint64_t* const bytes = bytes_of(key_of_entry(tensor), goes);
      for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
        if (bytes == nullptr) parted_.chunks.push_back(static_cast<size_t>(c));
        add(index.places[c], bytes);
      }
    }
    for (size_t o = 0; o < index.objects.size(); ++o) {
      uint64_t* const bytes = bytes_of(key_of_entry(index.objects[o]), goes);
      if (bytes == nullptr) parted_.objects.push_back(o);
      add(index.objects[o].place, bytes);
    }
  }
  Names names() const {
    Names names;
    for (const auto& [name, bytes] : entries_) names.insert(name);
    return names;
  }
  IndexWithout take() {
    for (const auto& [name, bytes] : entries_) parted_.entries.push_back({name, bytes});
    for (uint32_t f = 0; f < index_.files.size(); ++f)
      if (!used_.contains(f)) parted_.files.push_back(index_.files[f]);
    std::ranges::sort(parted_.files);
    return std::move(parted_);
  }

 private:
  // Of an entry that goes; null for one that stays.
  uint64_t* bytes_of(const std::string& name, const EntryNameRule& goes) {
    return goes(name) ? &entries_[name] : nullptr;
  }
  void add(const ItemPlace& place, uint64_t* bytes) {
    if (place.file == ItemPlace::kNowhere) return;
    if (bytes == nullptr) {
      used_.insert(place.file);
    } else {
      *bytes += place.size_bytes;
    }
  }

  const DcpIndex& index_;
  std::map<std::string, uint64_t> entries_;
  std::set<uint32_t> used_;  // files of what stays
  IndexWithout parted_;
};

// Whether the numbered parts of the index before are what the other one has.
class Comparison {
 public:
  Comparison(const DcpIndex& before, const DcpIndex& after) : before_(before), after_(after) {}

  bool is_same(const IndexWithout& parted, const Names& gone) const {
    if (parted.chunks.size() != after_.places.size() ||
        parted.objects.size() != after_.objects.size() || !facts_are_same())
      return false;
    for (size_t i = 0; i < parted.chunks.size(); ++i)
      if (!is_same_place(before_.places[parted.chunks[i]], after_.places[i])) return false;
    for (size_t i = 0; i < parted.objects.size(); ++i)
      if (!is_same_object(before_.objects[parted.objects[i]], after_.objects[i])) return false;
    return tensors_are_same(gone);
  }

 private:
  bool is_same_place(const ItemPlace& a, const ItemPlace& b) const {
    const auto file = [](const DcpIndex& index, const ItemPlace& place) {
      return place.file == ItemPlace::kNowhere ? "" : index.files[place.file];
    };
    const auto transform = [](const DcpIndex& index, const ItemPlace& place) {
      return place.transform == 0 ? "" : index.transforms[place.transform - 1];
    };
    return a.offset == b.offset && a.size_bytes == b.size_bytes &&
           file(before_, a) == file(after_, b) && transform(before_, a) == transform(after_, b);
  }
  bool is_same_object(const DcpIndex::Object& a, const DcpIndex::Object& b) const {
    return a.name == b.name && a.path == b.path && a.rank == b.rank &&
           is_same_place(a.place, b.place);
  }
  bool tensors_are_same(const Names& gone) const {
    auto b = after_.tensors.begin();
    for (const DcpIndex::Tensor& a : before_.tensors) {
      if (gone.contains(key_of_entry(a))) continue;
      if (b == after_.tensors.end() || a.name != b->name || a.path != b->path ||
          a.dtype != b->dtype || a.shape != b->shape || a.rank != b->rank ||
          a.chunk_count != b->chunk_count || !extents_are_same(a, *b))
        return false;
      ++b;
    }
    return b == after_.tensors.end();
  }
  bool extents_are_same(const DcpIndex::Tensor& a, const DcpIndex::Tensor& b) const {
    const size_t count = a.shape.size() * 2 * static_cast<size_t>(a.chunk_count);
    return std::ranges::equal(std::span(before_.extents).subspan(a.extent_begin, count),
                              std::span(after_.extents).subspan(b.extent_begin, count));
  }
  // Of attributes that are mappings by name the pairs of what went are gone as well.
  bool facts_are_same() const {
    std::map<std::string, std::string> before = before_.facts;
    for (const std::string& name : plans_of_ranks()) before.erase(name);
    return std::ranges::equal(before, after_.facts, {}, &KeyAndFact::first, &KeyAndFact::first);
  }
  using KeyAndFact = std::pair<const std::string, std::string>;

  const DcpIndex& before_;
  const DcpIndex& after_;
};

}  // namespace

Result<IndexWithout> index_without(std::span<const std::byte> bytes, const EntryNameRule& goes) {
  SHW_ASSIGN_OR_RETURN(const DcpIndex before, decode_index(bytes, kIndexName));
  Parting parting(before, goes);
  const Names gone = parting.names();
  IndexWithout parted = parting.take();
  if (gone.empty()) return parted;
  SHW_ASSIGN_OR_RETURN(parted.bytes, copy_without(bytes, gone));
  SHW_ASSIGN_OR_RETURN(const DcpIndex after,
                       decode_index(std::as_bytes(std::span(parted.bytes)), kIndexName));
  if (Comparison(before, after).is_same(parted, gone)) return parted;
  return cannot_be_written("what is left would say something else");
}

DigestSidecar sidecar_without(DigestSidecar before, const IndexWithout& index) {
  const auto keep = [](std::vector<SidecarItem>* items, const std::vector<size_t>& kept) {
    std::vector<SidecarItem> left;
    left.reserve(kept.size());
    for (const size_t number : kept)
      if (number < items->size()) left.push_back((*items)[number]);
    *items = std::move(left);
  };
  keep(&before.chunks, index.chunks);
  keep(&before.objects, index.objects);
  return before;
}

}  // namespace shardwright::format::torch_dcp
