// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/dcp_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_scan.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/torch_dcp/chunk_finder_internal.h"
#include "core/format/torch_dcp/index_classes.h"
#include "core/format/torch_dcp/rank_local_names.h"
#include "core/state/path.h"
#include "core/storage/storage.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::PickleCursor;
using archive::PickleData;
using archive::PickleKind;
using archive::PickleRef;

constexpr std::string_view kPackedFloat4 = "float4_e2m1fn_x2";
constexpr size_t kMaxNotes = 16;
constexpr size_t kMaxTransformBytes = size_t{4} << 10;  // of one item, joined
constexpr size_t kMaxTransforms = 64;                   // distinct ones
// Values stand in a pickle once and may be referred to by two bytes any number of times, so what
// they come to is bounded by the bytes of the pickle. torch writes 100 bytes and more for a chunk
// and its place, and each name once.
constexpr uint64_t kLeastBytesPerChunk = 8;
constexpr uint64_t kExtentsPerByte = 2;
constexpr uint64_t kPathBytesPerByte = 8;
// Names, files and transforms of stored items: each item refers to texts that others refer to.
constexpr uint64_t kItemTextPerByte = 64;
constexpr uint64_t kFreePathBytes = uint64_t{64} << 10;
constexpr uint64_t kMaxFactBytes = uint64_t{1} << 20;

class IndexReader {
 public:
  IndexReader(const PickleData& data, std::string_view file, uint64_t pickle_bytes)
      : data_(data),
        file_(file),
        chunks_left_(pickle_bytes / kLeastBytesPerChunk),
        extents_left_(pickle_bytes * kExtentsPerByte),
        name_bytes_left_(pickle_bytes),
        item_text_left_(pickle_bytes * kItemTextPerByte),
        path_bytes_left_(kFreePathBytes + pickle_bytes * kPathBytesPerByte) {}

  Result<DcpIndex> read() {
    const IndexClass root = class_of(data_.root());
    if (root != IndexClass::kMetadata && root != IndexClass::kMegatronMetadata)
      return damaged("holds no Metadata of torch.distributed.checkpoint");
    SHW_RETURN_IF_ERROR(take_states(field(data_.root(), MetadataField::kStates)));
    SHW_RETURN_IF_ERROR(finder_.index_names(index_));
    SHW_RETURN_IF_ERROR(take_storage(field(data_.root(), MetadataField::kStorage)));
    SHW_RETURN_IF_ERROR(take_paths(field(data_.root(), MetadataField::kPlanner)));
    take_facts();
    take_extras();
    return std::move(index_);
  }

 private:
  Status damaged(std::string_view what) const {
    return data_loss(fmt::format("file '{}' {}", escape_text(file_), what))
        .with_detail("file", file_);
  }
  Status damaged_tensor(std::string_view name, std::string_view what) const {
    return data_loss(fmt::format("file '{}': '{}' {}", escape_text(file_), escape_text(name), what))
        .with_detail("file", file_)
        .with_detail("tensor", name);
  }

  Status too_much(std::string_view name, std::string_view what) const {
    return resource_exhausted(
               "pickle", fmt::format("file '{}': up to '{}' it has more {} than an index of its "
                                     "size can have: values stand in it again and again",
                                     escape_text(file_), escape_text(name, 256), what))
        .with_detail("file", file_)
        .with_detail("tensor", name);
  }
  // False when less than that is left.
  static bool spend(uint64_t amount, uint64_t* left) {
    if (amount > *left) return false;
    *left -= amount;
    return true;
  }

  IndexClass class_of(PickleRef value) const {
    if (data_.kind(value) != PickleKind::kRecord) return IndexClass::kFirstOther;
    return static_cast<IndexClass>(
        std::min(data_.known(value), static_cast<int32_t>(IndexClass::kFirstOther)));
  }
  template <typename Field>
  PickleRef field(PickleRef record, Field which) const {
    return data_.fields(record)[static_cast<size_t>(which)];
  }
  bool is_none(PickleRef value) const {
    const PickleKind kind = data_.kind(value);
    return kind == PickleKind::kAbsent || kind == PickleKind::kNone;
  }
  bool is_mapping(PickleRef value) const { return data_.kind(value) == PickleKind::kDict; }

  // The integers of a torch.Size, or of a tuple or list in its place.
  bool integers_of(PickleRef value, Dims* dims) const {
    if (class_of(value) == IndexClass::kSize) {
      const auto arguments = data_.fields(value);
      if (arguments.empty()) return *dims = Dims(), true;
      if (arguments.size() != 1) return false;
      value = arguments[0];
    }
    const PickleKind kind = data_.kind(value);
    if (kind == PickleKind::kTuple) {
      const auto values = data_.tuple(value);
      if (values.size() > kMaxTensorRank) return false;
      *dims = Dims(values.size(), 0);
      for (size_t i = 0; i < values.size(); ++i) {
        if (data_.kind(values[i]) != PickleKind::kInteger) return false;
        (*dims)[i] = data_.integer(values[i]);
      }
      return true;
    }
    if (kind != PickleKind::kList || data_.part_count(value) > kMaxTensorRank) return false;
    *dims = Dims(static_cast<size_t>(data_.part_count(value)), 0);
    PickleCursor cursor = data_.parts(value);
    PickleRef part;
    for (size_t i = 0; cursor.next(&part); ++i) {
      if (data_.kind(part) != PickleKind::kInteger) return false;
      (*dims)[i] = data_.integer(part);
    }
    return true;
  }

  Status take_states(PickleRef states) {
    if (!is_mapping(states)) return damaged("has no state_dict_metadata");
    PickleCursor cursor = data_.pairs(states);
    PickleRef key, value;
    while (cursor.next(&key) && cursor.next(&value)) {
      if (data_.kind(key) != PickleKind::kText)
        return damaged("has an entry whose name is no text");
      const std::string_view name = data_.text(key);
      if (!spend(name.size(), &name_bytes_left_)) return too_much(name, "bytes of names");
      if (class_of(value) == IndexClass::kBytes) {
        index_.objects.push_back({std::string(name), {}, {}});
      } else if (class_of(value) == IndexClass::kTensor) {
        SHW_RETURN_IF_ERROR(take_tensor(name, value));
      } else {
        return damaged_tensor(name, "is neither a tensor nor bytes");
      }
    }
    return {};
  }

  Status take_tensor(std::string_view name, PickleRef value) {
    DcpIndex::Tensor tensor;
    tensor.name = name;
    tensor.chunk_begin = index_.places.size();
    tensor.extent_begin = index_.extents.size();
    bool is_pairs = false;
    SHW_RETURN_IF_ERROR(
        take_dtype(name, field(value, TensorField::kProperties), &tensor.dtype, &is_pairs));
    if (!integers_of(field(value, TensorField::kSize), &tensor.shape))
      return damaged_tensor(name, "has no shape");
    const size_t dims = tensor.shape.size();
    if (!spend(dims, &extents_left_)) return too_much(name, "extents");
    if (is_pairs) SHW_RETURN_IF_ERROR(unpack(name, tensor.shape.data(), tensor.shape.size()));
    const PickleRef chunks = field(value, TensorField::kChunks);
    if (data_.kind(chunks) != PickleKind::kList) return damaged_tensor(name, "has no chunks");
    PickleCursor cursor = data_.parts(chunks);
    PickleRef chunk;
    Dims offsets, sizes;
    while (cursor.next(&chunk)) {
      if (!spend(1, &chunks_left_)) return too_much(name, "chunks");
      if (!spend(2 * dims, &extents_left_)) return too_much(name, "extents");
      if (class_of(chunk) != IndexClass::kChunk ||
          !integers_of(field(chunk, ChunkField::kOffsets), &offsets) ||
          !integers_of(field(chunk, ChunkField::kSizes), &sizes) || offsets.size() != dims ||
          sizes.size() != dims)
        return damaged_tensor(name, "has a chunk that is no box of it");
      if (is_pairs) {
        SHW_RETURN_IF_ERROR(unpack(name, offsets.data(), dims));
        SHW_RETURN_IF_ERROR(unpack(name, sizes.data(), dims));
      }
      index_.extents.insert(index_.extents.end(), offsets.begin(), offsets.end());
      index_.extents.insert(index_.extents.end(), sizes.begin(), sizes.end());
      index_.places.emplace_back();
      ++tensor.chunk_count;
    }
    index_.tensors.push_back(std::move(tensor));
    return {};
  }

  // Two elements of float4 are one of torch's.
  Status unpack(std::string_view name, int64_t* extents, size_t count) const {
    if (count == 0) return damaged_tensor(name, "is packed and has no dimension");
    if (checked_multiply(extents[count - 1], int64_t{2}, &extents[count - 1])) return {};
    return damaged_tensor(name, "has a size beyond what can be counted");
  }

  Status take_dtype(std::string_view name, PickleRef properties, DType* dtype,
                    bool* is_pairs) const {
    const IndexClass kind = class_of(properties);
    const bool known = kind == IndexClass::kProperties || kind == IndexClass::kOldProperties;
    const PickleRef state = known ? data_.state(properties) : PickleRef();
    if (data_.kind(state) != PickleKind::kTuple || data_.tuple(state).empty() ||
        data_.kind(data_.tuple(state)[0]) != PickleKind::kGlobal)
      return damaged_tensor(name, "has properties without a dtype");
    const archive::PickleGlobal& global = data_.global(data_.tuple(state)[0]);
    *is_pairs = global.name == kPackedFloat4;
    const auto found =
        *is_pairs ? std::optional(DType::kFloat4E2m1fn) : dtype_from_name(global.name);
    // How torch lays out elements of less than a byte is known for pairs of float4 alone.
    if (global.module != "torch" || !found.has_value() ||
        (dtype_is_subbyte(*found) && !*is_pairs)) {
      return unimplemented(fmt::format("file '{}': '{}' has the dtype {}.{}, which is not known",
                                       escape_text(file_), escape_text(name),
                                       escape_text(global.module, 64),
                                       escape_text(global.name, 64)))
          .with_detail("file", file_)
          .with_detail("tensor", name);
    }
    *dtype = *found;
    return {};
  }

  Status take_storage(PickleRef storage) {
    if (!is_mapping(storage)) return damaged("has no storage_data");
    PickleCursor cursor = data_.pairs(storage);
    PickleRef key, value;
    Dims offset;
    uint64_t unknown = 0;
    while (cursor.next(&key) && cursor.next(&value)) {
      if (class_of(key) != IndexClass::kIndex ||
          data_.kind(field(key, IndexField::kName)) != PickleKind::kText)
        return damaged("has an entry of storage_data that is no MetadataIndex");
      const std::string_view name = data_.text(field(key, IndexField::kName));
      if (!spend(name.size(), &item_text_left_)) return too_much(name, "text of stored items");
      SHW_ASSIGN_OR_RETURN(const ItemPlace place, place_of(name, value));
      const PickleRef where = field(key, IndexField::kOffset);
      const PickleRef hint = field(key, IndexField::kHint);
      const bool has_offset = !is_none(where);
      if (has_offset && !integers_of(where, &offset))
        return damaged_tensor(name, "has an offset that is no tuple of integers");
      const int64_t hinted = data_.kind(hint) == PickleKind::kInteger ? data_.integer(hint) : -1;
      ItemPlace* const item = finder_.find(&index_, name, has_offset ? &offset : nullptr, hinted);
      if (item == nullptr) {
        ++unknown;
        continue;
      }
      *item = place;
    }
    if (unknown > 0) {
      index_.notes.push_back(fmt::format("{} stored items of '{}' belong to no entry of it",
                                         unknown, escape_text(file_)));
    }
    return {};
  }

  Result<ItemPlace> place_of(std::string_view name, PickleRef value) {
    if (class_of(value) != IndexClass::kStorageInfo)
      return damaged_tensor(name, "is stored in a way that is no _StorageInfo");
    ItemPlace place;
    int64_t end = 0;
    const PickleRef offset = field(value, StorageField::kOffset);
    const PickleRef length = field(value, StorageField::kLength);
    if (data_.kind(offset) != PickleKind::kInteger || data_.kind(length) != PickleKind::kInteger ||
        data_.integer(offset) < 0 || data_.integer(length) < 0 ||
        !checked_add(data_.integer(offset), data_.integer(length), &end))
      return damaged_tensor(name, "has no range of a file");
    place.offset = static_cast<uint64_t>(data_.integer(offset));
    place.size_bytes = static_cast<uint64_t>(data_.integer(length));
    const PickleRef path = field(value, StorageField::kPath);
    if (path.is_absent() || path != last_path_) {
      SHW_ASSIGN_OR_RETURN(last_file_, file_number(name, path));
      last_path_ = path;
    }
    place.file = last_file_;
    const PickleRef transforms = field(value, StorageField::kTransforms);
    if (!is_none(transforms)) {
      SHW_ASSIGN_OR_RETURN(place.transform, transform_number(name, transforms));
    }
    return place;
  }

  Result<uint32_t> file_number(std::string_view name, PickleRef path) {
    if (data_.kind(path) != PickleKind::kText)
      return damaged_tensor(name, "has no file that it is stored in");
    if (!spend(data_.text(path).size(), &item_text_left_))
      return too_much(name, "text of stored items");
    const std::string key(data_.text(path));
    const auto [known, added] =
        file_numbers_.try_emplace(key, static_cast<uint32_t>(index_.files.size()));
    if (!added) return known->second;
    const Status sound = storage::check_key(key);
    if (!sound.ok() || key.find('\\') != std::string::npos || key.find('\0') != std::string::npos) {
      return permission_denied(fmt::format("file '{}': '{}' is stored in '{}', which is no file "
                                           "below the checkpoint",
                                           escape_text(file_), escape_text(name), escape_text(key)))
          .with_detail("file", file_)
          .with_detail("tensor", name)
          .with_detail("unsafe", key);
    }
    index_.files.push_back(key);
    return known->second;
  }

  Result<uint32_t> transform_number(std::string_view name, PickleRef value) {
    if (data_.kind(value) != PickleKind::kList)
      return damaged_tensor(name, "has transforms that are no list");
    std::string joined;
    PickleCursor cursor = data_.parts(value);
    PickleRef part;
    while (cursor.next(&part)) {
      if (data_.kind(part) != PickleKind::kText)
        return damaged_tensor(name, "has a transform that is no text");
      if (!spend(1 + data_.text(part).size(), &item_text_left_))
        return too_much(name, "text of stored items");
      if (data_.text(part).size() >= kMaxTransformBytes - joined.size())
        return damaged_tensor(
            name, fmt::format("has transforms of more than {} bytes", kMaxTransformBytes));
      if (!joined.empty()) joined += ' ';
      joined += data_.text(part);
    }
    if (joined.empty()) return uint32_t{0};
    if (const auto known = transform_numbers_.find(joined); known != transform_numbers_.end())
      return known->second;
    if (index_.transforms.size() == kMaxTransforms)
      return damaged_tensor(name, fmt::format("has one more than {} transforms", kMaxTransforms));
    index_.transforms.push_back(joined);
    const auto number = static_cast<uint32_t>(index_.transforms.size());
    transform_numbers_.emplace(std::move(joined), number);
    return number;
  }

  Status take_parts(std::string_view name, PickleRef path, std::vector<PathPart>* parts) {
    uint64_t bytes_left = kFreePathBytes + name.size() * kPathBytesPerByte;
    for (const PickleRef part : data_.tuple(path)) {
      const PickleKind kind = data_.kind(part);
      const uint64_t bytes = 1 + (kind == PickleKind::kText ? data_.text(part).size() : 0);
      if (!spend(bytes, &bytes_left) || !spend(bytes, &path_bytes_left_))
        return too_much(name, "bytes of paths");
      if (kind == PickleKind::kText)
        parts->push_back({PathPartKind::kText, std::string(data_.text(part))});
      if (kind == PickleKind::kInteger)
        parts->push_back({PathPartKind::kPosition, fmt::to_string(data_.integer(part))});
    }
    return {};
  }

  // planner_data is opaque: what is no map from names to paths is left out.
  Status take_paths(PickleRef planner) {
    if (!is_mapping(planner)) return {};
    PickleCursor cursor = data_.pairs(planner);
    PickleRef key, value;
    while (cursor.next(&key) && cursor.next(&value)) {
      if (data_.kind(key) == PickleKind::kText && is_mapping(value))
        SHW_RETURN_IF_ERROR(take_own(data_.text(key), value));
      if (data_.kind(key) != PickleKind::kText || data_.kind(value) != PickleKind::kTuple) continue;
      const std::string_view name = data_.text(key);
      if (!spend(name.size(), &path_bytes_left_)) return too_much(name, "bytes of paths");
      std::string* const path = finder_.path_of(&index_, name);
      if (path == nullptr) continue;
      std::vector<PathPart> parts;
      SHW_RETURN_IF_ERROR(take_parts(name, value, &parts));
      if (parts.size() == data_.tuple(value).size() && join_path(parts) == name)
        *path = format_path(parts);
    }
    return {};
  }

  // What this library adds to planner_data (rank_local_names.h).
  Status take_own(std::string_view key, PickleRef value) {
    PickleCursor cursor = data_.pairs(value);
    PickleRef name, part;
    while (cursor.next(&name) && cursor.next(&part)) {
      if (data_.kind(name) != PickleKind::kText) continue;
      if (key == kMetadataKey) take_fact(data_.text(name), part);
      const bool is_names = key == kRankLocalKey && data_.text(name) == "names";
      if (!is_names || data_.kind(part) != PickleKind::kList) continue;
      PickleCursor names = data_.parts(part);
      for (PickleRef each; names.next(&each);) {
        if (data_.kind(each) != PickleKind::kText) continue;
        const std::string_view text = data_.text(each);
        if (!spend(text.size(), &path_bytes_left_)) return too_much(text, "bytes of paths");
        index_.rank_local.emplace(text);
      }
    }
    return {};
  }

  void take_fact(std::string_view key, PickleRef value) {
    if (data_.kind(value) != PickleKind::kText || index_.facts.size() >= kMaxNotes) return;
    if (!is_valid_utf8(data_.text(value))) return;
    index_.facts.emplace(key, data_.text(value));
  }

  void take_facts() {
    take_fact("version", field(data_.root(), MetadataField::kVersion));
    const PickleRef meta = field(data_.root(), MetadataField::kStorageMeta);
    if (class_of(meta) != IndexClass::kStorageMeta) return;
    take_fact("save_id", field(meta, StorageMetaField::kSave));
    take_fact("checkpoint_id", field(meta, StorageMetaField::kCheckpoint));
  }

  // What others set on the Metadata.
  void take_extras() {
    if (data_.kind(data_.state(data_.root())) != PickleKind::kDict) return;
    PickleCursor cursor = data_.pairs(data_.state(data_.root()));
    PickleRef key, value;
    size_t seen = 0;
    while (seen++ < kMaxNotes && cursor.next(&key) && cursor.next(&value)) {
      if (data_.kind(key) != PickleKind::kText || !is_valid_utf8(data_.text(key)) ||
          data_.text(key).size() > kMaxNameBytes || is_field(data_.text(key)))
        continue;
      index_.facts.emplace(data_.text(key), fact_of(value));
    }
  }
  static bool is_field(std::string_view name) {
    const auto fields = index_vocabulary()[static_cast<size_t>(IndexClass::kMetadata)].fields;
    return std::ranges::find(fields, name) != fields.end();
  }

  // JSON of plain data that is not large, else what it is.
  std::string fact_of(PickleRef value) const {
    archive::PickleCopyRules rules;
    rules.vocabulary = index_vocabulary();
    rules.budget_bytes = kMaxFactBytes;
    const archive::PickleCopy copy = archive::copy_pickle(data_, value, rules);
    if (copy.is_whole) {
      archive::PickleOptions options;
      options.file = file_;
      options.vocabulary = archive::torch_vocabulary();
      const auto alone = archive::read_pickle(std::as_bytes(std::span(copy.bytes)), options);
      uint64_t budget = kMaxFactBytes;
      if (alone.ok()) {
        archive::ExportedValue exported = archive::export_value(*alone, alone->root(), &budget);
        if (exported.content_type == archive::kJsonType) return std::move(exported.bytes);
      }
    }
    const bool is_list = data_.kind(value) == PickleKind::kList;
    return is_list ? fmt::format("a list of {}", data_.part_count(value)) : "a value";
  }

  const PickleData& data_;
  std::string_view file_;
  uint64_t chunks_left_;
  uint64_t extents_left_;
  uint64_t name_bytes_left_;
  uint64_t item_text_left_;
  uint64_t path_bytes_left_;
  DcpIndex index_;
  internal::ChunkFinder finder_;
  std::map<std::string, uint32_t> file_numbers_;
  std::map<std::string, uint32_t> transform_numbers_;
  PickleRef last_path_;
  uint32_t last_file_ = 0;
};

// Indexes of other libraries lie under the same name.
Status other_library(std::span<const std::byte> bytes, std::string_view file) {
  for (const archive::PickleImport& import : archive::scan_pickle(bytes, file).imports) {
    if (!import.module.starts_with("hyper_parallel.")) continue;
    return unimplemented(fmt::format("file '{}' is an index of a HyperParallel checkpoint, which "
                                     "this version recognises but cannot read",
                                     escape_text(file)))
        .with_detail("file", file)
        .with_detail("format", "a HyperParallel checkpoint");
  }
  return {};
}

}  // namespace

Result<std::optional<std::string>> index_attribute(std::span<const std::byte> bytes,
                                                   std::string_view file, std::string_view name) {
  archive::PickleOptions options;
  options.file = file;
  options.vocabulary = index_vocabulary();
  options.calls = archive::PickleCalls::kKnownOnly;
  SHW_ASSIGN_OR_RETURN(const PickleData data, archive::read_pickle(bytes, options));
  const PickleRef state =
      data.kind(data.root()) == PickleKind::kRecord ? data.state(data.root()) : PickleRef();
  if (data.kind(state) != PickleKind::kDict) return std::optional<std::string>();
  PickleCursor cursor = data.pairs(state);
  for (PickleRef key, value; cursor.next(&key) && cursor.next(&value);) {
    if (data.kind(key) != PickleKind::kText || data.text(key) != name) continue;
    archive::PickleCopyRules rules;
    rules.vocabulary = index_vocabulary();
    archive::PickleCopy copy = archive::copy_pickle(data, value, rules);
    if (copy.is_whole) return std::optional(std::move(copy.bytes));
    return unimplemented(fmt::format("file '{}': its attribute '{}' holds itself",
                                     escape_text(file), escape_text(name)))
        .with_detail("file", file);
  }
  return std::optional<std::string>();
}

uint64_t chunk_bytes(const DcpIndex& index, const DcpIndex::Tensor& tensor, uint64_t chunk) {
  uint64_t bits = static_cast<uint64_t>(dtype_bits(tensor.dtype));
  for (const int64_t extent : index.sizes(tensor, chunk)) {
    if (extent < 0 || !checked_multiply(bits, static_cast<uint64_t>(extent), &bits))
      return UINT64_MAX;
  }
  return bits / 8 + 1;
}

Result<DcpIndex> decode_index(std::span<const std::byte> bytes, std::string_view file) {
  archive::PickleOptions options;
  options.file = file;
  options.vocabulary = index_vocabulary();
  options.calls = archive::PickleCalls::kKnownOnly;
  uint64_t end = 0;
  const auto read = archive::read_pickle(bytes, options, &end);
  if (!read.ok()) {
    SHW_RETURN_IF_ERROR(other_library(bytes, file));
    return read.status();
  }
  const PickleData& data = *read;
  if (end != bytes.size()) {
    return data_loss(fmt::format("file '{}' has {} bytes behind its pickle", escape_text(file),
                                 bytes.size() - end))
        .with_detail("file", file)
        .with_detail("offset", fmt::to_string(end));
  }
  auto index = IndexReader(data, file, bytes.size()).read();
  if (!index.ok()) SHW_RETURN_IF_ERROR(other_library(bytes, file));
  return index;
}

}  // namespace shardwright::format::torch_dcp
