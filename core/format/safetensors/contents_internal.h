// SPDX-License-Identifier: Apache-2.0
//
// What the headers of one or more files say together: a proved catalog and the place of each chunk.
// Files are added one by one, so that no more than one header is text at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/derived_items.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/safetensors/header.h"
#include "core/format/safetensors/hf_index.h"
#include "core/plan/catalog.h"

namespace shardwright::format::safetensors::internal {

// A file as it was read: all but its buffer.
struct SourceFile {
  FileInfo info;
  std::string version;  // of the storage; empty = not known
  std::string header;
};

// What is kept of a file to tell whether it is still the same.
struct FileIdentity {
  std::string version;
  Digest128 header{};
};

struct Contents {
  std::vector<FileInfo> files;
  std::vector<FileIdentity> identities;
  plan::Catalog catalog;
  std::vector<uint32_t> chunk_files;
  std::vector<uint64_t> chunk_offsets;
  // Of byte objects, whose text stands in a header: file, and place in the derived one.
  std::vector<uint32_t> object_files;
  std::vector<uint64_t> object_offsets;
  DerivedItems derived;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> notes;
};

enum class Parts : uint8_t { kWhole, kOfTensors };  // whether a file may hold parts of tensors

class ContentsBuilder {
 public:
  // index: of the directory, or null; outlives the builder. Files come in its order.
  ContentsBuilder(const HfIndex* index, std::string_view index_name, Parts parts)
      : index_(index), index_name_(index_name), parts_(parts) {}
  // DATA_LOSS for what is no sound file, or does not fit the index.
  Status add_file(SourceFile source);
  // DATA_LOSS for tensors that overlap, have holes or are in two files.
  Result<Contents> finish() &&;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  struct Item {
    uint32_t file = 0;
    HeaderTensor tensor;
    uint32_t next = kNone;  // the next part of the same tensor
  };

  bool is_elsewhere(std::string_view name, uint32_t file);
  // Takes the byte objects out of the metadata of a file.
  struct ObjectSource {
    std::string_view key;
    uint32_t file = 0;
  };
  Status add_objects(const ObjectSource& from, Header* header);
  Status add_object(const ObjectSource& from, std::string_view name, std::string_view text);
  Status check_object_names() const;
  Status find_listed() const;
  Status join_parts();
  Status same_name_twice(const Item& first, const Item& second) const;
  Result<Box> box_of(const Item& item) const;
  Status add_tensor(uint32_t first);
  Status not_together(uint32_t first, const Status& why) const;
  Status prove();
  void merge_metadata();
  void compare_with_index();
  void add_note(std::string note);
  std::string_view name_of(const Item& item) const { return headers_[item.file].name(item.tensor); }

  const HfIndex* index_;
  std::string_view index_name_;
  Parts parts_;
  Contents contents_;
  std::vector<uint64_t> buffer_begins_;
  std::vector<Header> headers_;          // without their tensors
  std::vector<ByName<Dims>> shardings_;  // of each file; empty = its tensors are whole
  std::vector<bool> is_sharded_;
  std::map<std::string, Digest128, std::less<>> objects_;  // by name: of their texts
  size_t found_ = 0;                                       // tensors that lie where the index says
  size_t unlisted_ = 0;
  std::string first_unlisted_;
  std::vector<Item> items_;
  std::vector<uint32_t> firsts_;  // items that begin a tensor, in order of appearance
};

}  // namespace shardwright::format::safetensors::internal
