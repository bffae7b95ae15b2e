// SPDX-License-Identifier: Apache-2.0
//
//   Metadata = state_dict_metadata, planner_data, storage_data, storage_meta, version
//
// Classes and names of fields come first and are dropped again, so that they have the first places
// of the memo, which are named by two bytes. A tensor's name, and the offsets of each chunk, are
// remembered where they stand first: storage_data names both again.
#include "core/format/torch_dcp/index_writer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_writer.h"
#include "core/format/torch_dcp/index_classes.h"
#include "core/format/torch_dcp/item_archive.h"
#include "core/format/torch_dcp/rank_local_names.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/state/path.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::PickleMemo;
using archive::PickleProtocol;
using archive::PickleWriter;

constexpr size_t kBatch = 1000;            // pairs that are joined by one opcode
constexpr uint64_t kBytesPerTensor = 256;  // about
constexpr uint64_t kBytesPerChunk = 96;

std::string key_of(const plan::Catalog& catalog, plan::TextId name, int32_t rank) {
  return rank < 0 ? std::string(catalog.texts.at(name))
                  : rank_local_key(catalog.texts.at(name), rank);
}

// A mapping that is filled pair by pair.
class DictWriter {
 public:
  explicit DictWriter(PickleWriter* pickle) : pickle_(*pickle) { pickle_.empty_dict(); }
  // Before each pair.
  void next() {
    if (count_ == kBatch) close();
    if (count_++ == 0) pickle_.mark();
  }
  void close() {
    if (count_ > 0) pickle_.set_items_to_mark();
    count_ = 0;
  }

 private:
  PickleWriter& pickle_;
  size_t count_ = 0;
};

class IndexWriter {
 public:
  explicit IndexWriter(const IndexContents& contents)
      : contents_(contents), catalog_(contents.catalog), pickle_(PickleProtocol::k4) {}

  Result<EncodedIndex> run() {
    prime();
    begin(metadata_);
    pickle_.mark();
    pickle_.text("state_dict_metadata");
    SHW_RETURN_IF_ERROR(write_states());
    pickle_.text("planner_data");
    write_planner();
    pickle_.text("storage_data");
    SHW_RETURN_IF_ERROR(write_storage());
    pickle_.text("storage_meta");
    write_storage_meta();
    pickle_.text("version").text("1.0.0");
    pickle_.set_items_to_mark().build();
    if (text_keys_ > 0) {
      notes_.push_back(
          fmt::format("{} paths have integer keys of mappings, which torch's index keeps as text "
                      "(first: '{}')",
                      text_keys_, escape_text(first_text_key_, 128)));
    }
    if (flat_paths_ > 0) {
      notes_.push_back(fmt::format(
          "{} rank_local entries lie in lists, so torch finds them under their flat names",
          flat_paths_));
    }
    return EncodedIndex{std::move(pickle_).finish(), std::move(notes_)};
  }

 private:
  PickleMemo keep_global(std::string_view module, std::string_view name) {
    pickle_.global(module, name);
    const PickleMemo memo = pickle_.memoize();
    pickle_.pop();
    return memo;
  }
  PickleMemo keep_text(std::string_view text) {
    pickle_.text(text);
    const PickleMemo memo = pickle_.memoize();
    pickle_.pop();
    return memo;
  }

  void prime() {
    metadata_ = keep_global(kMetadataModule, "Metadata");
    tensor_ = keep_global(kMetadataModule, "TensorStorageMetadata");
    bytes_ = keep_global(kMetadataModule, "BytesStorageMetadata");
    chunk_ = keep_global(kMetadataModule, "ChunkStorageMetadata");
    index_ = keep_global(kMetadataModule, "MetadataIndex");
    properties_ = keep_global(kMetadataModule, "TensorProperties");
    storage_meta_ = keep_global(kMetadataModule, "StorageMeta");
    storage_info_ = keep_global(kFilesModule, "_StorageInfo");
    size_ = keep_global("torch", "Size");
    properties_field_ = keep_text("properties");
    size_field_ = keep_text("size");
    chunks_field_ = keep_text("chunks");
    offsets_field_ = keep_text("offsets");
    sizes_field_ = keep_text("sizes");
    name_field_ = keep_text("fqn");
    index_field_ = keep_text("index");
    offset_field_ = keep_text("offset");
    path_field_ = keep_text("relative_path");
    length_field_ = keep_text("length");
    pickle_.global("torch.serialization", "_get_layout").text("torch.strided").tuple(1).reduce();
    layout_ = pickle_.memoize();
    pickle_.pop();
    pickle_.global(kMetadataModule, "_MEM_FORMAT_ENCODING").integer(0).tuple(1).reduce();
    encoding_ = pickle_.memoize();
    pickle_.pop();
    for (const std::string& file : contents_.files) files_.push_back(keep_text(file));
    make_fragments();
    pickle_.reserve(pickle_.size_bytes() + kBytesPerTensor * catalog_.tensors.size() +
                    kBytesPerChunk * catalog_.chunk_count());
  }

  // What stands between the numbers of chunks and places.
  template <typename Write>
  std::string fragment(const Write& write) {
    const uint64_t begin = pickle_.size_bytes();
    write();
    std::string opcodes = pickle_.since(begin);
    pickle_.cut(begin);
    return opcodes;
  }
  void make_fragments() {
    begin_chunk_ = fragment([&] {
      begin(chunk_);
      pickle_.mark().get(offsets_field_);
    });
    begin_index_ = fragment([&] {
      begin(index_);
      pickle_.mark().get(name_field_);
    });
    begin_place_ = fragment([&] {
      begin(storage_info_);
      pickle_.mark().get(path_field_);
    });
    sizes_of_chunk_ = fragment([&] { pickle_.get(sizes_field_); });
    index_of_chunk_ = fragment([&] { pickle_.get(index_field_); });
    offset_of_item_ = fragment([&] { pickle_.get(offset_field_); });
    length_of_item_ = fragment([&] { pickle_.get(length_field_); });
    end_state_ = fragment([&] { pickle_.set_items_to_mark().build(); });
  }

  // An instance, whose state comes next.
  void begin(PickleMemo type) { pickle_.get(type).empty_tuple().new_object().empty_dict(); }

  void write_size(std::span<const int64_t> extents) {
    pickle_.get(size_);
    if (extents.empty()) {
      pickle_.empty_tuple();
    } else if (extents.size() <= 3) {
      for (const int64_t extent : extents) pickle_.integer(extent);
      pickle_.tuple(extents.size());
    } else {
      pickle_.mark();
      for (const int64_t extent : extents) pickle_.integer(extent);
      pickle_.tuple_to_mark();
    }
    pickle_.tuple(1).reduce();
  }

  Status write_states() {
    DictWriter states(&pickle_);
    names_.reserve(catalog_.tensors.size() + catalog_.objects.size());
    offsets_.resize(static_cast<size_t>(catalog_.chunk_count()));
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) {
      states.next();
      const plan::TensorRecord& record = catalog_.tensors[t];
      pickle_.text(key_of(catalog_, record.name, record.rank));
      names_.push_back(pickle_.memoize());
      SHW_RETURN_IF_ERROR(write_tensor(t));
    }
    for (const plan::ObjectRecord& record : catalog_.objects) {
      states.next();
      pickle_.text(key_of(catalog_, record.name, record.rank));
      names_.push_back(pickle_.memoize());
      pickle_.get(bytes_).empty_tuple().new_object();
    }
    states.close();
    return {};
  }

  Status write_tensor(size_t tensor) {
    const plan::TensorRecord& record = catalog_.tensors[tensor];
    SHW_ASSIGN_OR_RETURN(const TorchElements elements, torch_elements(record.dtype));
    SHW_ASSIGN_OR_RETURN(const Dims shape, torch_extents(elements, catalog_.shape(tensor)));
    begin(tensor_);
    pickle_.mark().get(properties_field_);
    pickle_.get(properties_).empty_tuple().new_object().mark();
    pickle_.global("torch", elements.dtype).get(layout_).boolean(false).get(encoding_);
    pickle_.boolean(false).tuple_to_mark().build();
    pickle_.get(size_field_);
    write_size(shape);
    pickle_.get(chunks_field_);
    SHW_RETURN_IF_ERROR(write_chunks(record, elements));
    pickle_.set_items_to_mark().build();
    return {};
  }

  bool has_place(uint64_t chunk) const {
    return contents_.chunks[static_cast<size_t>(chunk)].file != ItemPlace::kNowhere;
  }

  Status write_chunks(const plan::TensorRecord& record, const TorchElements& elements) {
    pickle_.empty_list();
    Dims last;  // sizes, which many chunks share
    std::optional<PickleMemo> last_memo;
    size_t count = 0;
    const auto close = [&] {
      if (count > 0) pickle_.appends_to_mark();
      count = 0;
    };
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      if (!has_place(c)) continue;
      if (count == kBatch) close();
      if (count++ == 0) pickle_.mark();
      const Box box = catalog_.chunk_box(c);
      SHW_ASSIGN_OR_RETURN(const Dims offsets, torch_extents(elements, box.offsets));
      SHW_ASSIGN_OR_RETURN(const Dims sizes, torch_extents(elements, box.sizes));
      pickle_.again(begin_chunk_);
      write_size(offsets);
      offsets_[static_cast<size_t>(c)] = pickle_.memoize();
      pickle_.again(sizes_of_chunk_);
      if (last_memo.has_value() && last == sizes) {
        pickle_.get(*last_memo);
      } else {
        write_size(sizes);
        last_memo = pickle_.memoize();
        last = sizes;
      }
      pickle_.again(end_state_);
    }
    close();
    return {};
  }

  void write_planner() {
    DictWriter paths(&pickle_);
    std::set<std::string_view> rank_local;
    size_t number = 0;
    const auto write = [&](plan::TextId name, plan::TextId path, int32_t rank) {
      paths.next();
      pickle_.get(names_[number++]);
      write_path(catalog_.texts.at(name), catalog_.texts.at(path), rank);
      if (rank >= 0) rank_local.insert(catalog_.texts.at(name));
    };
    for (const plan::TensorRecord& record : catalog_.tensors)
      write(record.name, record.path, record.rank);
    for (const plan::ObjectRecord& record : catalog_.objects)
      write(record.name, record.path, record.rank);
    if (!rank_local.empty()) {
      paths.next();
      write_rank_local(rank_local);
    }
    if (!contents_.metadata.empty()) {
      paths.next();
      pickle_.text(kMetadataKey).empty_dict().mark();
      for (const auto& [key, value] : contents_.metadata) pickle_.text(key).text(value);
      pickle_.set_items_to_mark();
    }
    paths.close();
  }

  void write_rank_local(const std::set<std::string_view>& names) {
    pickle_.text(kRankLocalKey).empty_dict().mark();
    pickle_.text("rule").text(kRankLocalRule).text("names").empty_list().mark();
    for (const std::string_view name : names) pickle_.text(name);
    pickle_.appends_to_mark().set_items_to_mark();
  }

  // Keys of mappings are text to torch, positions in lists are integers.
  void write_path(std::string_view name, std::string_view path, int32_t rank) {
    std::vector<PathPart> parts;
    if (!path.empty()) {
      Result<std::vector<PathPart>> parsed = parse_path(path);
      if (parsed.ok()) parts = std::move(*parsed);
    }
    const bool in_list = !parts.empty() && parts.back().kind == PathPartKind::kPosition;
    if (rank >= 0 && in_list) ++flat_paths_;
    if (parts.empty() || (rank >= 0 && in_list)) {
      parts.clear();
      parts.push_back({PathPartKind::kText, std::string(name)});
    }
    if (rank >= 0) parts.back().text = rank_local_key(parts.back().text, rank);
    note_text_keys(name, parts);
    if (parts.size() > 3) pickle_.mark();
    for (const PathPart& part : parts) {
      const bool is_position = part.kind == PathPartKind::kPosition;
      is_position ? pickle_.integer_of_digits(part.text) : pickle_.shared_text(part.text);
    }
    parts.size() > 3 ? pickle_.tuple_to_mark() : pickle_.tuple(parts.size());
  }

  void note_text_keys(std::string_view name, std::span<const PathPart> parts) {
    const bool has_one = std::ranges::any_of(
        parts, [](const PathPart& part) { return part.kind == PathPartKind::kInteger; });
    if (has_one && text_keys_++ == 0) first_text_key_ = name;
  }

  Status write_storage() {
    DictWriter storage(&pickle_);
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) {
      const plan::TensorRecord& record = catalog_.tensors[t];
      int64_t number = 0;
      for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
        if (!has_place(c)) continue;
        storage.next();
        pickle_.again(begin_index_).get(names_[t]).again(index_of_chunk_).integer(number++);
        pickle_.again(offset_of_item_).get(offsets_[static_cast<size_t>(c)]).again(end_state_);
        write_place(contents_.chunks[static_cast<size_t>(c)]);
      }
    }
    for (size_t o = 0; o < catalog_.objects.size(); ++o) {
      storage.next();
      pickle_.again(begin_index_).get(names_[catalog_.tensors.size() + o]);
      pickle_.again(index_of_chunk_).none().again(end_state_);
      write_place(contents_.objects[o]);
    }
    storage.close();
    return {};
  }

  void write_place(const ItemPlace& place) {
    pickle_.again(begin_place_).get(files_[place.file]);
    pickle_.again(offset_of_item_).integer(static_cast<int64_t>(place.offset));
    pickle_.again(length_of_item_).integer(static_cast<int64_t>(place.size_bytes));
    pickle_.again(end_state_);
  }

  void write_storage_meta() {
    begin(storage_meta_);
    pickle_.mark().text("checkpoint_id").text(contents_.checkpoint_id);
    pickle_.text("save_id").text(contents_.save_id).text("load_id").none();
    pickle_.text("modules").empty_list().set_items_to_mark().build();
  }

  const IndexContents& contents_;
  const plan::Catalog& catalog_;
  PickleWriter pickle_;
  PickleMemo metadata_, tensor_, bytes_, chunk_, index_, properties_, storage_meta_, storage_info_;
  PickleMemo size_, layout_, encoding_;
  PickleMemo properties_field_, size_field_, chunks_field_, offsets_field_, sizes_field_;
  PickleMemo name_field_, index_field_, offset_field_, path_field_, length_field_;
  std::string begin_chunk_, begin_index_, begin_place_, end_state_;
  std::string sizes_of_chunk_, index_of_chunk_, offset_of_item_, length_of_item_;
  std::vector<PickleMemo> files_;
  std::vector<PickleMemo> names_;    // of tensors, then of objects
  std::vector<PickleMemo> offsets_;  // by chunk
  std::vector<std::string> notes_;
  size_t text_keys_ = 0;
  std::string first_text_key_;
  size_t flat_paths_ = 0;
};

Status refuse_key(std::string_view key, std::string_view why) {
  return invalid_argument(
             fmt::format("'{}' cannot be stored in torch's format: {}", escape_text(key), why))
      .with_detail("tensor", key);
}

// Keys by which rank_local entries are stored, and the few that mean something. A reader tells the
// former by the names of such entries alone: the key of a rank that has none is taken as well.
Status check_keys(const plan::Catalog& catalog) {
  std::unordered_set<std::string> made;
  std::set<std::string_view> rank_local;
  const auto each_entry = [&catalog](const auto& visit) -> Status {
    for (const plan::TensorRecord& record : catalog.tensors)
      SHW_RETURN_IF_ERROR(visit(record.name, record.rank));
    for (const plan::ObjectRecord& record : catalog.objects)
      SHW_RETURN_IF_ERROR(visit(record.name, record.rank));
    return {};
  };
  SHW_RETURN_IF_ERROR(each_entry([&](plan::TextId name, int32_t rank) -> Status {
    if (rank < 0) return {};
    rank_local.insert(catalog.texts.at(name));
    if (made.insert(key_of(catalog, name, rank)).second) return {};
    return refuse_key(key_of(catalog, name, rank), "two entries of a rank would have this key");
  }));
  return each_entry([&](plan::TextId name, int32_t rank) -> Status {
    const std::string_view text = catalog.texts.at(name);
    if (text == kRankLocalKey || text == kMetadataKey)
      return refuse_key(text, "the key is one of the format's own");
    if (rank >= 0 || rank_local.empty()) return {};
    const auto split = split_rank_local_key(text);
    if (!split.has_value() || !rank_local.contains(split->name)) return {};
    return refuse_key(text, "it is how an entry of a rank is stored; rename one of them");
  });
}

}  // namespace

Status check_indexable(const plan::Catalog& catalog) {
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const plan::TensorRecord& record = catalog.tensors[t];
    const auto name = catalog.tensor_name(t);
    const auto named = [&](Status status) {
      return std::move(status)
          .annotated(fmt::format("tensor '{}'", escape_text(name)))
          .with_detail("tensor", name)
          .with_detail("format", kFormatName);
    };
    const Result<TorchElements> elements = torch_elements(record.dtype);
    if (!elements.ok()) return named(elements.status());
    if (!elements->is_pairs) continue;
    const Status whole = torch_extents(*elements, catalog.shape(t)).status();
    if (!whole.ok()) return named(whole);
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      const Box box = catalog.chunk_box(c);
      Status cut = torch_extents(*elements, box.offsets).status();
      if (cut.ok()) cut = torch_extents(*elements, box.sizes).status();
      if (!cut.ok()) return named(std::move(cut));
    }
  }
  return check_keys(catalog);
}

Result<EncodedIndex> encode_index(const IndexContents& contents) {
  return IndexWriter(contents).run();
}

}  // namespace shardwright::format::torch_dcp
