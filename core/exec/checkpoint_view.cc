// SPDX-License-Identifier: Apache-2.0
//
// A read of a box becomes reads of the source, as view_reads_internal.h has it for each piece. Runs
// of objects are read at once.
#include "core/exec/checkpoint_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/device/devices.h"
#include "core/exec/checkpoint_reader_internal.h"
#include "core/exec/item_checksums.h"
#include "core/exec/view_reads_internal.h"
#include "core/integrity/digest.h"

namespace shardwright::exec {
namespace {

// What the source opened, with other entries. Bytes are asked of the view, never of this.
class OpenedView final : public format::OpenedCheckpoint {
 public:
  OpenedView(const format::OpenedCheckpoint& source, std::string_view identity) : source_(source) {
    const std::string text = fmt::format("{}\n{}", source.identity(), identity);
    identity_ = to_hex(integrity::xxh3_128(std::as_bytes(std::span(text))));
  }

  plan::Catalog& entries() { return catalog_; }

  std::string_view format_name() const override { return source_.format_name(); }
  std::string_view generation() const override { return source_.generation(); }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return source_.world_size(); }
  int64_t created_unix_ns() const override { return source_.created_unix_ns(); }
  const std::map<std::string, std::string>& metadata() const override { return source_.metadata(); }
  const plan::Catalog& catalog() const override { return catalog_; }
  const std::vector<format::FileInfo>& files() const override { return source_.files(); }
  const std::vector<std::string>& notes() const override { return source_.notes(); }
  uint32_t chunk_file(size_t) const override { return 0; }
  uint32_t object_file(size_t) const override { return 0; }
  Result<format::Extent> chunk_extent(size_t) const override { return no_place(); }
  Result<format::Extent> object_extent(size_t) const override { return no_place(); }
  uint64_t digest_block_bytes() const override { return source_.digest_block_bytes(); }
  Status prepare_file(uint32_t file) const override { return source_.prepare_file(file); }
  Status check_file(uint32_t file) const override { return source_.check_file(file); }
  Status check_manifest() const override { return source_.check_manifest(); }
  Status check_chunk_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return no_place();
  }
  Status check_object_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return no_place();
  }
  Status explain_missing(uint32_t file) const override { return source_.explain_missing(file); }
  Result<std::vector<format::Extent>> padding(uint32_t) const override {
    return std::vector<format::Extent>();
  }

 private:
  static Status no_place() { return internal_error("entries of a view have no place in a file"); }

  const format::OpenedCheckpoint& source_;
  plan::Catalog catalog_;
  std::string identity_;
};

class CheckpointView final : public Checkpoint {
 public:
  CheckpointView(Runtime& runtime, std::shared_ptr<const Checkpoint> source, ViewContents contents)
      : runtime_(runtime),
        source_(std::move(source)),
        contents_(std::move(contents)),
        opened_(source_->opened(), contents_.identity),
        checksums_(source_->opened()) {}

  // Before the first read.
  Status fill();

  const format::OpenedCheckpoint& opened() const override { return opened_; }
  const plan::CatalogIndex& index() const override { return *index_; }
  const format::Location& location() const override { return source_->location(); }
  Result<size_t> find_tensor(std::string_view name, int32_t rank) const override {
    return found(index_->find_tensor(name, rank), "tensor", name);
  }
  Result<size_t> find_object(std::string_view name, int32_t rank) const override {
    return found(index_->find_object(name, rank), "object", name);
  }
  Result<ReadOutcome> read_boxes(std::span<const BoxRead> reads, ReadRules rules,
                                 const CallContext& call) const override;
  Result<std::vector<std::byte>> read_object(size_t object, ReadRules rules) const override {
    const ViewObject& entry = contents_.objects[object];
    if (entry.object == ViewObject::kOwnBytes) return entry.bytes;
    return source_->read_object(entry.object, rules);
  }
  Status read_object_part(size_t object, uint64_t begin, std::span<std::byte> target,
                          ReadRules rules, const CallContext& call) const override;
  Result<Report> find_damage(bool deep, const CallContext& call) const override {
    return source_->find_damage(deep, call);
  }
  Result<std::vector<std::byte>> tensor_digest(size_t tensor,
                                               integrity::TensorDigestAlgorithm algorithm,
                                               const CallContext& call) const override {
    return internal::digest_of_tensor(runtime_, *this, tensor, algorithm, call);
  }
  std::string info_json(bool with_entries) const override {
    return internal::checkpoint_info_json(opened_, with_entries);
  }

 private:
  Status add_tensor(const ViewTensor& tensor);
  Status check_piece(const ViewTensor& tensor, const ViewPiece& piece) const;
  Status add_run(const ViewTensor& tensor);
  Status read_run(const BoxRead& read, ReadRules rules, const CallContext& call) const;
  Status fill_zeros(const BoxRead& read, const Box& part) const;
  static Result<size_t> found(int64_t number, std::string_view what, std::string_view name) {
    if (number >= 0) return static_cast<size_t>(number);
    return not_found(fmt::format("the view holds no {} named {}", what, escape_text(name)))
        .with_detail(what, name);
  }

  Runtime& runtime_;
  const std::shared_ptr<const Checkpoint> source_;  // co-owned with who opened it
  const ViewContents contents_;
  OpenedView opened_;
  std::unique_ptr<const plan::CatalogIndex> index_;
  mutable ItemChecksums checksums_;  // thread-safe
  bool has_checksums_ = false;
};

Status bad_piece(const ViewTensor& tensor, std::string_view what) {
  return invalid_argument(fmt::format("tensor '{}': {}", escape_text(tensor.name), what))
      .with_detail("tensor", tensor.name);
}

Status CheckpointView::add_run(const ViewTensor& tensor) {
  const plan::Catalog& stored = source_->catalog();
  const ViewRun& run = tensor.run;
  const bool is_run = tensor.shape.size() == 1 && tensor.pieces.empty() &&
                      dtype_bits(run.dtype) % 8 == 0 && dtype_bits(run.dtype) > 0;
  if (!is_run || run.object >= stored.objects.size())
    return bad_piece(tensor, "no run of whole bytes in a stored object");
  SHW_ASSIGN_OR_RETURN(const uint64_t bytes, dtype_packed_bytes(run.dtype, tensor.shape[0]));
  const uint64_t size = stored.objects[run.object].size_bytes;
  if (run.begin > size || bytes > size - run.begin)
    return bad_piece(tensor, fmt::format("{} bytes from {} on leave object '{}'", bytes, run.begin,
                                         escape_text(stored.object_name(run.object))));
  plan::CatalogBuilder::Tensor entry;
  entry.name = tensor.name;
  entry.path = tensor.path;
  entry.dtype = run.dtype;
  entry.kind = EntryKind::kSharded;
  entry.shape = tensor.shape;
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  if (tensor.shape[0] > 0) chunks.push_back({whole_box(tensor.shape), 0});
  return plan::CatalogBuilder(&opened_.entries()).add_tensor(entry, chunks);
}

Status CheckpointView::read_run(const BoxRead& read, ReadRules rules,
                                const CallContext& call) const {
  const ViewRun& run = contents_.tensors[read.tensor].run;
  if (!read.target.is_contiguous())
    return unimplemented("runs of a stored object are read into contiguous memory only");
  const uint64_t element = static_cast<uint64_t>(dtype_bits(run.dtype)) / 8;
  const std::span<std::byte> target(read.target.data,
                                    static_cast<size_t>(read.box.sizes[0]) * element);
  const uint64_t begin = run.begin + static_cast<uint64_t>(read.box.offsets[0]) * element;
  return source_->read_object_part(run.object, begin, target, rules, call);
}

// That a piece lies in its source.
Status CheckpointView::check_piece(const ViewTensor& tensor, const ViewPiece& piece) const {
  const plan::Catalog& stored = source_->catalog();
  if (piece.tensor >= stored.tensors.size()) return bad_piece(tensor, "no such source");
  const std::span<const int64_t> shape = stored.shape(piece.tensor);
  Box there{piece.offsets, internal::sizes_in_source(piece)};
  if (piece.sizes.empty() && shape.size() == 1) there.sizes = Dims{box_element_count(piece.box)};
  Status fits = check_box(there, shape);
  const bool is_like_it = piece.sizes.empty() || internal::has_same_dimensions(piece) ||
                          (piece.box.sizes.size() == 1 && fits.ok() &&
                           box_element_count(there) == box_element_count(piece.box));
  if (fits.ok() && !is_like_it) fits = invalid_argument("it has other sizes");
  const bool is_reshaped = !piece.sizes.empty() || shape.size() != tensor.shape.size();
  if (fits.ok() && (!is_reshaped || !dtype_is_subbyte(stored.tensors[piece.tensor].dtype)))
    return {};
  return bad_piece(tensor, fmt::format("box {} of its source: {}", box_text(there),
                                       fits.ok() ? "elements below a byte" : fits.message()));
}

Status CheckpointView::add_tensor(const ViewTensor& tensor) {
  if (tensor.is_run()) return add_run(tensor);
  const plan::Catalog& stored = source_->catalog();
  plan::CatalogBuilder::Tensor entry;
  entry.name = tensor.name;
  entry.path = tensor.path;
  entry.kind = EntryKind::kSharded;
  entry.shape = tensor.shape;
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  bool has_zeros = false;
  for (const ViewPiece& piece : tensor.pieces) {
    chunks.push_back({piece.box, 0});
    has_zeros = has_zeros || piece.tensor == ViewPiece::kZeros;
    if (piece.tensor == ViewPiece::kZeros) continue;
    SHW_RETURN_IF_ERROR(check_piece(tensor, piece));
    const DType dtype = stored.tensors[piece.tensor].dtype;
    if (entry.dtype != DType::kInvalid && entry.dtype != dtype)
      return bad_piece(tensor, "its pieces have several dtypes");
    entry.dtype = dtype;
  }
  if (has_zeros && entry.dtype == DType::kInvalid)
    return bad_piece(tensor, "nothing of it is stored");
  if (has_zeros && dtype_is_subbyte(entry.dtype))
    return bad_piece(tensor, "zeros among elements below a byte");
  plan::CatalogBuilder builder(&opened_.entries());
  return builder.add_tensor(entry, chunks);
}

Status CheckpointView::fill() {
  const plan::Catalog& stored = source_->catalog();
  plan::Catalog& entries = opened_.entries();
  for (const ViewTensor& tensor : contents_.tensors) SHW_RETURN_IF_ERROR(add_tensor(tensor));
  plan::CatalogBuilder builder(&entries, kMaxDescribedObjectBytes);
  for (const ViewObject& object : contents_.objects) {
    plan::ObjectRecord record;
    record.size_bytes = object.bytes.size();
    std::string_view content_type = object.content_type;
    if (object.object != ViewObject::kOwnBytes) {
      if (object.object >= stored.objects.size())
        return invalid_argument(fmt::format("object '{}': no such source", object.name));
      record = stored.objects[object.object];
      content_type = stored.texts.at(record.content_type);
    }
    SHW_RETURN_IF_ERROR(builder.add_object(record, object.name, object.path, content_type));
  }
  SHW_RETURN_IF_ERROR(plan::check_catalog(entries));
  const Status whole = plan::prove_all_covers(entries, plan::Copies::kRefused, "piece");
  if (!whole.ok()) return invalid_argument(std::string(whole.message()));
  index_ = std::make_unique<const plan::CatalogIndex>(entries);
  has_checksums_ = ItemChecksums::are_offered(source_->opened());
  if (!has_checksums_) return {};
  std::vector<size_t> all;
  for (const ViewTensor& tensor : contents_.tensors) {
    for (const ViewPiece& piece : tensor.pieces) {
      if (piece.tensor != ViewPiece::kZeros) all.push_back(piece.tensor);
    }
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  checksums_.expect(chunks_of(stored, all), 0);
  return {};
}

Status CheckpointView::fill_zeros(const BoxRead& read, const Box& part) const {
  const TensorView memory = internal::memory_of(read, part);
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow window, runtime_.devices().whole_window(memory));
  return device::with_tensor(window.device->fill_zero(window), "filling",
                             contents_.tensors[read.tensor].name);
}

Result<ReadOutcome> CheckpointView::read_boxes(std::span<const BoxRead> reads, ReadRules rules,
                                               const CallContext& call) const {
  std::vector<BoxRead> below;
  ReadOutcome outcome;
  for (const BoxRead& read : reads) {
    if (read.tensor >= contents_.tensors.size())
      return out_of_range(fmt::format("there is no tensor number {}", read.tensor));
    const ViewTensor& tensor = contents_.tensors[read.tensor];
    SHW_RETURN_IF_ERROR(check_box(read.box, tensor.shape));
    if (tensor.is_run()) {
      SHW_RETURN_IF_ERROR(read_run(read, rules, call));
      outcome.bytes_read += static_cast<uint64_t>(read.box.sizes[0]) *
                            static_cast<uint64_t>(dtype_bits(tensor.run.dtype)) / 8;
      continue;
    }
    for (const uint64_t chunk : index_->chunks_meeting(read.tensor, read.box)) {
      const auto number = chunk - opened_.catalog().tensors[read.tensor].chunk_begin;
      const ViewPiece& piece = tensor.pieces[static_cast<size_t>(number)];
      const Box part = intersect(piece.box, read.box);
      if (piece.tensor == ViewPiece::kZeros) {
        SHW_RETURN_IF_ERROR(fill_zeros(read, part));
        continue;
      }
      const size_t source_rank = source_->catalog().shape(piece.tensor).size();
      SHW_RETURN_IF_ERROR(internal::add_piece_reads(piece, source_rank, {part, read}, &below));
    }
  }
  if (below.empty()) return outcome;
  if (has_checksums_) rules.checksums = &checksums_;
  SHW_ASSIGN_OR_RETURN(ReadOutcome read_below, source_->read_boxes(below, rules, call));
  read_below.bytes_read += outcome.bytes_read;
  return read_below;
}

Status CheckpointView::read_object_part(size_t object, uint64_t begin, std::span<std::byte> target,
                                        ReadRules rules, const CallContext& call) const {
  const ViewObject& entry = contents_.objects[object];
  if (entry.object != ViewObject::kOwnBytes)
    return source_->read_object_part(entry.object, begin, target, rules, call);
  if (begin > entry.bytes.size() || target.size() > entry.bytes.size() - begin)
    return out_of_range(fmt::format("object '{}' ends there", escape_text(entry.name)));
  if (!target.empty()) std::memcpy(target.data(), entry.bytes.data() + begin, target.size());
  return {};
}

}  // namespace

ViewTensor named_as_stored(const plan::Catalog& catalog, size_t tensor) {
  ViewTensor named;
  named.name = catalog.tensor_name(tensor);
  named.path = catalog.texts.at(catalog.tensors[tensor].path);
  named.shape = Dims(catalog.shape(tensor));
  return named;
}

ViewTensor tensor_as_stored(const plan::Catalog& catalog, size_t tensor) {
  ViewTensor stored = named_as_stored(catalog, tensor);
  const plan::TensorRecord& record = catalog.tensors[tensor];
  for (uint64_t k = 0; k < record.chunk_count; ++k) {
    const Box box = catalog.chunk_box(record.chunk_begin + k);
    stored.pieces.push_back({box, tensor, box.offsets});
  }
  return stored;
}

ViewObject as_stored(const plan::Catalog& catalog, size_t object) {
  ViewObject stored;
  stored.name = catalog.object_name(object);
  stored.path = catalog.texts.at(catalog.objects[object].path);
  stored.object = object;
  return stored;
}

Result<std::shared_ptr<const Checkpoint>> make_view(Runtime& runtime,
                                                    std::shared_ptr<const Checkpoint> source,
                                                    ViewContents contents) {
  auto view = std::make_shared<CheckpointView>(runtime, std::move(source), std::move(contents));
  SHW_RETURN_IF_ERROR(view->fill());
  return std::shared_ptr<const Checkpoint>(std::move(view));
}

}  // namespace shardwright::exec
