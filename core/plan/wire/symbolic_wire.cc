// SPDX-License-Identifier: Apache-2.0
//
// Symbolic descriptions and parts to plan buffers and back. Equal descriptions give equal bytes:
// texts stand in the order of the entries, shapes in the order of their first use.
#include <cstring>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/hash_index.h"
#include "core/base/limits.h"
#include "core/plan/digest.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/columns_internal.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::uoffset_t;
using flatbuffers::Vector;
using internal::copy_column;
using internal::count_of;
using internal::record_at;

constexpr uint64_t kFixedBytes = 1024;

static_assert(sizeof(wire::SymbolicTensor) == 20);
static_assert(sizeof(wire::SymbolicObject) == 24);
static_assert(sizeof(wire::ShardAxis) == sizeof(ShardAxis));

template <typename Wire, typename Record>
Offset<Vector<const Wire*>> records(FlatBufferBuilder* builder, const std::vector<Record>& from) {
  static_assert(sizeof(Wire) == sizeof(Record));
  if (from.empty()) return 0;
  Wire* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(from.size(), &out);
  std::memcpy(static_cast<void*>(out), from.data(), from.size() * sizeof(Record));
  return offset;
}

template <typename Number>
Offset<Vector<Number>> numbers(FlatBufferBuilder* builder, const std::vector<Number>& from) {
  return from.empty() ? 0 : builder->CreateVector(from);
}

Offset<Vector<uint8_t>> text_bytes(FlatBufferBuilder* builder, std::string_view text) {
  if (text.empty()) return 0;
  return builder->CreateVector(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

template <typename Body>
Bytes finish(FlatBufferBuilder* builder, wire::PlanBufferKind kind, Offset<Body> body) {
  wire::PlanBufferBuilder root(*builder);
  root.add_schema_major(internal::kPlanSchemaMajor);
  root.add_schema_minor(internal::kPlanSchemaMinor);
  root.add_minimum_reader_minor(internal::kPlanSchemaMinor);
  root.add_kind(kind);
  if constexpr (std::is_same_v<Body, wire::SymbolicSave>) {
    root.add_symbolic_save(body);
  } else if constexpr (std::is_same_v<Body, wire::SymbolicPart>) {
    root.add_symbolic_part(body);
  } else {
    root.add_symbolic_local(body);
  }
  builder->FinishSizePrefixed(root.Finish(), internal::kPlanIdentifier);
  const auto* begin = reinterpret_cast<const std::byte*>(builder->GetBufferPointer());
  return Bytes(begin, begin + builder->GetSize());
}

uint64_t size_bound(const SymbolicDescription& description) {
  return kFixedBytes + catalog_wire_bytes(description.catalog) + description.options_text.size() +
         sizeof(ShardAxis) * description.axes.size() +
         sizeof(uint32_t) * (description.layout_ends.size() + 2 * description.forms.size()) +
         sizeof(Digest128) *
             (description.tensor_digests.size() + description.object_digests.size());
}

// The columns of a description that are not kept as they go on the wire.
class DescriptionColumns {
 public:
  explicit DescriptionColumns(const SymbolicDescription& description) : from_(description) {
    const Catalog& catalog = from_.catalog;
    tensors.reserve(catalog.tensors.size());
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      const uint32_t name = add_text(tensor.name);
      const uint32_t path = add_text(tensor.path);
      tensors.emplace_back(name, path, shape_number(catalog.shape(t)), from_.forms[t],
                           static_cast<uint8_t>(tensor.dtype), static_cast<uint8_t>(tensor.kind),
                           static_cast<uint16_t>(0));
    }
    for (const ObjectRecord& object : catalog.objects) {
      const uint32_t name = add_text(object.name);
      const uint32_t path = add_text(object.path);
      const uint32_t type = add_text(object.content_type);
      objects.emplace_back(object.size_bytes, name, path, type, static_cast<uint8_t>(object.kind),
                           static_cast<uint8_t>(0), static_cast<uint16_t>(0));
    }
  }

  std::string texts;
  std::vector<wire::SymbolicTensor> tensors;
  std::vector<wire::SymbolicObject> objects;
  std::vector<uint64_t> shapes;
  std::vector<uint32_t> shape_ends;

 private:
  uint32_t add_text(TextId id) {
    const std::string_view text = from_.catalog.texts.at(id);
    texts += text;
    return static_cast<uint32_t>(text.size());
  }

  static std::string_view bytes_of(std::span<const int64_t> shape) {
    return {reinterpret_cast<const char*>(shape.data()), shape.size_bytes()};
  }

  uint32_t shape_number(std::span<const int64_t> shape) {
    const auto known = [this](size_t i) {
      const size_t begin = i == 0 ? 0 : shape_ends[i - 1];
      return std::string_view(reinterpret_cast<const char*>(shapes.data() + begin),
                              (shape_ends[i] - begin) * sizeof(uint64_t));
    };
    const uint64_t hash = hash_text(bytes_of(shape));
    const auto found = index_.find(hash, [&](size_t i) { return known(i) == bytes_of(shape); });
    if (found.has_value()) return static_cast<uint32_t>(*found);
    for (const int64_t extent : shape) shapes.push_back(static_cast<uint64_t>(extent));
    shape_ends.push_back(static_cast<uint32_t>(shapes.size()));
    index_.reserve(shape_ends.size(), [&](size_t i) { return hash_text(known(i)); });
    index_.insert(hash, shape_ends.size() - 1);
    return static_cast<uint32_t>(shape_ends.size() - 1);
  }

  const SymbolicDescription& from_;
  HashIndex index_;
};

// A buffer inside another one that is not what it must be.
Status as_damage(const Status& status, std::string_view what) {
  if (status.code() == StatusCode::kUnimplemented) return status;
  return data_loss(fmt::format("the {} in it: {}", what, status.message()));
}

// Texts of a buffer, taken one after the other.
class TextReader {
 public:
  explicit TextReader(const Vector<uint8_t>* bytes)
      : rest_(bytes == nullptr
                  ? std::string_view()
                  : std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size())) {
  }
  bool take(uint32_t size, TextColumn* column, TextId* out) {
    if (size > rest_.size()) return false;
    *out = column->append(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Tensors of the body into the catalog.
Status copy_tensors(const wire::SymbolicSave& body, TextReader* texts,
                    SymbolicDescription* description) {
  Catalog& catalog = description->catalog;
  const std::vector<uint64_t> shapes = copy_column<uint64_t>(body.shapes());
  const std::vector<uint32_t> ends = copy_column<uint32_t>(body.shape_ends());
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    if (ends[i] < begin || ends[i] > shapes.size() ||
        ends[i] - begin > static_cast<uint32_t>(kMaxTensorRank))
      return data_loss(fmt::format("shape {} ends at {}", i, ends[i]));
  }
  for (uoffset_t t = 0; t < count_of(body.tensors()); ++t) {
    const wire::SymbolicTensor from = record_at(body.tensors(), t);
    TensorRecord record;
    if (from.reserved() != 0 || from.shape() >= ends.size() ||
        !texts->take(from.name_bytes(), &catalog.texts, &record.name) ||
        !texts->take(from.path_bytes(), &catalog.texts, &record.path))
      return data_loss(
          fmt::format("tensor {} of a description has texts or a shape that are not "
                      "there",
                      t));
    const uint32_t begin = from.shape() == 0 ? 0 : ends[from.shape() - 1];
    record.dtype = static_cast<DType>(from.dtype());
    record.kind = static_cast<EntryKind>(from.kind());
    record.rank = record.kind == EntryKind::kRankLocal ? 0 : -1;
    record.shape_begin = catalog.shapes.size();
    record.dimension_count = ends[from.shape()] - begin;
    for (uint32_t i = begin; i < ends[from.shape()]; ++i)
      catalog.shapes.push_back(static_cast<int64_t>(shapes[i]));
    catalog.tensors.push_back(record);
    description->forms.push_back(from.form());
  }
  return {};
}

Status copy_objects(const wire::SymbolicSave& body, TextReader* texts, Catalog* catalog) {
  for (uoffset_t i = 0; i < count_of(body.objects()); ++i) {
    const wire::SymbolicObject from = record_at(body.objects(), i);
    ObjectRecord record;
    if (from.reserved0() != 0 || from.reserved1() != 0 ||
        !texts->take(from.name_bytes(), &catalog->texts, &record.name) ||
        !texts->take(from.path_bytes(), &catalog->texts, &record.path) ||
        !texts->take(from.content_type_bytes(), &catalog->texts, &record.content_type))
      return data_loss(fmt::format("object {} of a description has texts that are not there", i));
    record.kind = static_cast<EntryKind>(from.kind());
    record.rank = record.kind == EntryKind::kRankLocal ? 0 : -1;
    record.size_bytes = from.size_bytes();
    catalog->objects.push_back(record);
  }
  return {};
}

}  // namespace

Result<Bytes> encode(const SymbolicDescription& description) {
  const uint64_t size = size_bound(description);
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the symbolic description"));
  const DescriptionColumns columns(description);
  FlatBufferBuilder builder(size);
  const auto options_text = text_bytes(&builder, description.options_text);
  const auto texts = text_bytes(&builder, columns.texts);
  const auto tensors = records<wire::SymbolicTensor>(&builder, columns.tensors);
  const auto objects = records<wire::SymbolicObject>(&builder, columns.objects);
  const auto shapes = numbers(&builder, columns.shapes);
  const auto shape_ends = numbers(&builder, columns.shape_ends);
  const auto axes = records<wire::ShardAxis>(&builder, description.axes);
  const auto layout_ends = numbers(&builder, description.layout_ends);
  const auto tensor_digests = records<wire::Digest>(&builder, description.tensor_digests);
  const auto object_digests = records<wire::Digest>(&builder, description.object_digests);
  const wire::Digest options_digest = wire::encode_digest(description.options_digest);
  return finish(&builder, wire::PlanBufferKind::SymbolicSave,
                wire::CreateSymbolicSave(builder, &options_digest, options_text, texts, tensors,
                                         objects, shapes, shape_ends, axes, layout_ends,
                                         tensor_digests, object_digests));
}

Result<Bytes> encode(const SymbolicPart& part) {
  const uint64_t size =
      kFixedBytes + sizeof(BoxList) * part.lists.size() + sizeof(ChunkRecord) * part.boxes.size() +
      sizeof(ExtentPair) * part.more.size() + sizeof(uint64_t) * part.object_sizes.size() +
      (sizeof(uint32_t) + sizeof(Digest128)) * part.digest_tensors.size();
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the symbolic part"));
  FlatBufferBuilder builder(size);
  const auto lists = records<wire::BoxList>(&builder, part.lists);
  const auto boxes = records<wire::ChunkRecord>(&builder, part.boxes);
  const auto more = records<wire::ExtentPair>(&builder, part.more);
  const auto object_sizes = numbers(&builder, part.object_sizes);
  const auto digest_tensors = numbers(&builder, part.digest_tensors);
  const auto tensor_digests = records<wire::Digest>(&builder, part.tensor_digests);
  const wire::Digest digest = wire::encode_digest(part.description_digest);
  return finish(&builder, wire::PlanBufferKind::SymbolicPart,
                wire::CreateSymbolicPart(builder, part.rank, part.world_size, &digest, lists, boxes,
                                         more, object_sizes, digest_tensors, tensor_digests));
}

Result<Bytes> encode(const LocalSymbolicPlan& plan) {
  SHW_ASSIGN_OR_RETURN(const Bytes description, encode(plan.description));
  SHW_ASSIGN_OR_RETURN(const Bytes part, encode(plan.part));
  const uint64_t size = kFixedBytes + description.size() + part.size();
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the symbolic local plan"));
  FlatBufferBuilder builder(size);
  const auto nested = [&builder](const Bytes& bytes) {
    return builder.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  };
  const auto description_bytes = nested(description);
  const auto part_bytes = nested(part);
  return finish(&builder, wire::PlanBufferKind::SymbolicLocal,
                wire::CreateSymbolicLocal(builder, description_bytes, part_bytes));
}

Result<SymbolicDescription> internal::copy_symbolic_save(const wire::SymbolicSave* body) {
  SymbolicDescription description;
  description.options_digest = wire::decode_digest(body->options_digest());
  if (body->options_text() != nullptr) {
    description.options_text.assign(reinterpret_cast<const char*>(body->options_text()->data()),
                                    body->options_text()->size());
  }
  TextReader texts(body->texts());
  SHW_RETURN_IF_ERROR(copy_tensors(*body, &texts, &description));
  SHW_RETURN_IF_ERROR(copy_objects(*body, &texts, &description.catalog));
  if (!texts.at_end()) return data_loss("a description has texts of no entry");
  description.axes = copy_column<ShardAxis>(body->axes());
  description.layout_ends = copy_column<uint32_t>(body->layout_ends());
  description.tensor_digests = copy_column<Digest128>(body->tensor_digests());
  description.object_digests = copy_column<Digest128>(body->object_digests());
  return description;
}

Result<SymbolicPart> internal::copy_symbolic_part(const wire::SymbolicPart* body) {
  SymbolicPart part;
  part.rank = body->rank();
  part.world_size = body->world_size();
  part.description_digest = wire::decode_digest(body->description_digest());
  part.lists = copy_column<BoxList>(body->lists());
  part.boxes = copy_column<ChunkRecord>(body->boxes());
  part.more = copy_column<ExtentPair>(body->more());
  part.object_sizes = copy_column<uint64_t>(body->object_sizes());
  part.digest_tensors = copy_column<uint32_t>(body->digest_tensors());
  part.tensor_digests = copy_column<Digest128>(body->tensor_digests());
  return part;
}

Result<LocalSymbolicPlan> internal::copy_symbolic_local(const wire::SymbolicLocal* body) {
  LocalSymbolicPlan plan;
  Result<SymbolicDescription> description =
      decode_symbolic_save(internal::bytes_of_column(body->description()));
  if (!description.ok()) return as_damage(description.status(), "description");
  Result<SymbolicPart> part = decode_symbolic_part(internal::bytes_of_column(body->part()));
  if (!part.ok()) return as_damage(part.status(), "part");
  plan.description = std::move(*description);
  plan.part = std::move(*part);
  return plan;
}

std::vector<std::string> internal::symbolic_local_findings(const LocalSymbolicPlan& plan,
                                                           size_t limit) {
  const Result<Digest128> digest = symbolic_digest(plan.description);
  if (!digest.ok()) return {std::string(digest.status().message())};
  if (*digest != plan.part.description_digest) return {"the part belongs to another description"};
  return part_findings(plan.description, plan.part, limit);
}

std::vector<std::string> internal::symbolic_part_findings(const SymbolicPart& part, size_t limit) {
  std::vector<std::string> findings;
  if (part.world_size < 1 || part.world_size > kMaxWorldSize || part.rank < 0 ||
      part.rank >= part.world_size)
    findings.push_back(fmt::format("rank {} of {} is no position", part.rank, part.world_size));
  if (part.digest_tensors.size() != part.tensor_digests.size())
    findings.push_back(fmt::format("{} digests of {} tensors", part.tensor_digests.size(),
                                   part.digest_tensors.size()));
  for (size_t i = 1; i < part.digest_tensors.size() && findings.size() < limit; ++i) {
    if (part.digest_tensors[i] <= part.digest_tensors[i - 1])
      findings.push_back(
          fmt::format("the digest of tensor {} is out of order", part.digest_tensors[i]));
  }
  for (size_t i = 0; i < part.object_sizes.size() && findings.size() < limit; ++i) {
    if (part.object_sizes[i] > kMaxObjectBytes)
      findings.push_back(fmt::format("rank_local object {} has {} bytes", i, part.object_sizes[i]));
  }
  if (findings.size() > limit) findings.resize(limit);
  return findings;
}

}  // namespace shardwright::plan
