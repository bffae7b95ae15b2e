// SPDX-License-Identifier: Apache-2.0
//
//   common.pt = archive: data.pkl, byteorder, data/0, data/1, ..., version
//
// Storages are numbered in the order in which their tensors come.
#include "core/format/megatron/unsharded_state.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_writer.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/archive/zip_writer.h"
#include "core/format/torch_dcp/item_archive.h"
#include "core/integrity/crc32.h"
#include "core/state/path.h"

namespace shardwright::format::megatron {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;
using archive::ZipFraming;
using archive::ZipWriter;

constexpr size_t kMaxDepth = 256;

Status does_not_fit(const CommonEntry& entry, std::string_view why) {
  return invalid_argument(
             fmt::format("entry '{}' of the common state {}", escape_text(entry.name), why))
      .with_detail("object", entry.name);
}

// Keys and positions below "common"; none for the whole value.
Result<std::vector<PathPart>> parts_of(const CommonEntry& entry) {
  std::vector<PathPart> parts;
  if (!entry.path.empty()) {
    SHW_ASSIGN_OR_RETURN(parts, parse_path(entry.path));
    if (!parts.empty() && parts[0].text == kCommonKey) {
      parts.erase(parts.begin());
      return parts;
    }
  }
  parts.clear();
  std::string_view rest = entry.name;
  rest.remove_prefix(std::min(rest.size(), kCommonKey.size() + 1));
  while (!rest.empty()) {
    const size_t end = rest.find('.');
    parts.push_back({PathPartKind::kText, std::string(rest.substr(0, end))});
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return parts;
}

struct Node {
  enum class Kind : uint8_t { kUnknown, kEntry, kDict, kList };
  Kind kind = Kind::kUnknown;
  const CommonEntry* entry = nullptr;
  std::vector<std::pair<PathPart, Node>> children = {};
  std::map<std::string, size_t, std::less<>> numbers = {};  // of children, by their keys
};

class CommonTree {
 public:
  Status add(const CommonEntry& entry) {
    SHW_ASSIGN_OR_RETURN(const std::vector<PathPart> parts, parts_of(entry));
    if (parts.size() > kMaxDepth) return does_not_fit(entry, "is nested too deeply");
    Node* at = &root_;
    for (const PathPart& part : parts) {
      const bool in_list = part.kind == PathPartKind::kPosition;
      const Node::Kind wanted = in_list ? Node::Kind::kList : Node::Kind::kDict;
      if (at->kind == Node::Kind::kUnknown) at->kind = wanted;
      if (at->kind != wanted) return does_not_fit(entry, kConflict);
      at = child(at, part);
    }
    if (at->kind != Node::Kind::kUnknown) return does_not_fit(entry, kConflict);
    at->kind = Node::Kind::kEntry;
    at->entry = &entry;
    return {};
  }

  // After the last one: lists in their order.
  Result<const Node*> finish() {
    SHW_RETURN_IF_ERROR(order(&root_, 0));
    return &root_;
  }

 private:
  static constexpr std::string_view kConflict =
      "lies where another one is a value, or keys and positions of a list are mixed";

  static Node* child(Node* in, const PathPart& part) {
    const bool is_integer = part.kind == PathPartKind::kInteger;
    const std::string key = (is_integer ? "#" : "$") + part.text;
    const auto [found, is_new] = in->numbers.try_emplace(key, in->children.size());
    if (is_new) in->children.emplace_back(part, Node{});
    return &in->children[found->second].second;
  }

  static const CommonEntry& any_entry(const Node& node) {
    const Node* at = &node;
    while (at->entry == nullptr) at = &at->children.front().second;
    return *at->entry;
  }

  static uint64_t position_of(const PathPart& part) {
    uint64_t position = 0;
    std::from_chars(part.text.data(), part.text.data() + part.text.size(), position);
    return position;
  }

  // Bounded by kMaxDepth. NOLINTNEXTLINE(misc-no-recursion)
  static Status order(Node* node, size_t depth) {
    if (node->kind == Node::Kind::kList) {
      std::ranges::sort(node->children, {},
                        [](const auto& each) { return position_of(each.first); });
      for (size_t i = 0; i < node->children.size(); ++i) {
        if (position_of(node->children[i].first) != i)
          return does_not_fit(any_entry(node->children[i].second),
                              fmt::format("lies in a list in which position {} is missing", i));
      }
    }
    for (auto& [part, below] : node->children) SHW_RETURN_IF_ERROR(order(&below, depth + 1));
    return {};
  }

  Node root_;
};

class CommonWriter {
 public:
  CommonWriter() : pickle_(PickleProtocol::k2) {}

  Result<std::vector<std::byte>> run(const Node& root, CommonForm form) {
    const bool in_list = form == CommonForm::kListOfOne;
    if (in_list) pickle_.empty_list().memoize();
    SHW_RETURN_IF_ERROR(write(root));
    if (in_list) pickle_.append();
    const std::string pickle = std::move(pickle_).finish();
    return archive_of(std::as_bytes(std::span(pickle)));
  }

 private:
  // Bounded by kMaxDepth. NOLINTNEXTLINE(misc-no-recursion)
  Status write(const Node& node) {
    if (node.kind == Node::Kind::kEntry) return write_entry(*node.entry);
    if (node.kind == Node::Kind::kList) {
      pickle_.empty_list().memoize();
    } else {
      pickle_.empty_dict().memoize();
    }
    for (const auto& [part, below] : node.children) {
      if (part.kind == PathPartKind::kInteger) pickle_.integer_of_digits(part.text);
      if (part.kind == PathPartKind::kText) pickle_.shared_text(part.text);
      SHW_RETURN_IF_ERROR(write(below));
      if (part.kind == PathPartKind::kPosition) {
        pickle_.append();
      } else {
        pickle_.set_item();
      }
    }
    return {};
  }

  Status write_entry(const CommonEntry& entry) {
    if (entry.dtype == DType::kInvalid) return write_value(entry);
    const std::string key = fmt::to_string(storages_.size());
    torch_dcp::pickle_tensor({entry.dtype, entry.sizes, entry.bytes.size(), key}, &pickle_);
    storages_.push_back(&entry);
    return {};
  }

  Status write_value(const CommonEntry& entry) {
    const archive::ArchiveBytes item = archive::bytes_of(entry.bytes, 0, entry.name);
    SHW_ASSIGN_OR_RETURN(const archive::TorchArchive opened, archive::TorchArchive::open(item));
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle, opened.read_pickle(item));
    archive::PickleOptions options;
    options.file = entry.name;
    options.vocabulary = archive::torch_vocabulary();
    SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(pickle, options));
    archive::PickleCopyRules rules;
    rules.protocol = PickleProtocol::k2;
    rules.vocabulary = archive::torch_vocabulary();
    rules.budget_bytes = kMaxCommonBytes;
    if (archive::copy_pickle_into(data, data.root(), rules, &pickle_)) return {};
    return unimplemented(
               fmt::format("'{}' of the common state has tensors inside of an object, or holds "
                           "itself, and cannot be written with the others: give its tensors names "
                           "of their own, or leave it out",
                           escape_text(entry.name)))
        .with_detail("object", entry.name);
  }

  Result<std::vector<std::byte>> archive_of(std::span<const std::byte> pickle) {
    SHW_RETURN_IF_ERROR(add(torch_dcp::kArchivePickleName, pickle));
    SHW_RETURN_IF_ERROR(add_text(torch_dcp::kArchiveByteOrder));
    for (size_t i = 0; i < storages_.size(); ++i) {
      const std::string name = fmt::format("{}{}", torch_dcp::kArchiveStoragesName, i);
      SHW_RETURN_IF_ERROR(add(name, storages_[i]->bytes));
    }
    SHW_RETURN_IF_ERROR(add_text(torch_dcp::kArchiveVersion));
    std::vector<std::byte> all;
    all.reserve(static_cast<size_t>(zip_.total_bytes()));
    const auto append = [&all](std::span<const std::byte> part) {
      all.insert(all.end(), part.begin(), part.end());
    };
    for (size_t entry = 0; entry < records_.size(); ++entry) {
      append(zip_.header(entry));
      append(records_[entry]);
      append(zip_.trailer(entry));
    }
    append(zip_.end());
    return all;
  }

  Status add(std::string_view name, std::span<const std::byte> bytes) {
    SHW_ASSIGN_OR_RETURN(const size_t entry, zip_.add(name, bytes.size()));
    zip_.set_crc(entry, integrity::crc32(0, bytes));
    records_.push_back(bytes);
    return {};
  }
  Status add_text(const torch_dcp::ArchiveText& record) {
    return add(record.name, std::as_bytes(std::span(record.text)));
  }

  PickleWriter pickle_;
  std::vector<const CommonEntry*> storages_;
  ZipWriter zip_{ZipFraming::kPlain};
  std::vector<std::span<const std::byte>> records_;
};

}  // namespace

bool is_common(std::string_view name) {
  return name.starts_with(kCommonKey) &&
         (name.size() == kCommonKey.size() || name[kCommonKey.size()] == '.');
}

Result<std::vector<std::byte>> encode_common(std::span<const CommonEntry> entries,
                                             CommonForm form) {
  CommonTree tree;
  for (const CommonEntry& entry : entries) SHW_RETURN_IF_ERROR(tree.add(entry));
  SHW_ASSIGN_OR_RETURN(const Node* const root, tree.finish());
  return CommonWriter().run(*root, form);
}

}  // namespace shardwright::format::megatron
