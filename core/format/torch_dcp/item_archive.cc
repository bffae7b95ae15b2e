// SPDX-License-Identifier: Apache-2.0
//
// A wrapping is rendered twice, with two checksums of which no byte is equal; where the renderings
// differ is where checksums go.
#include "core/format/torch_dcp/item_archive.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/format/archive/pickle_writer.h"
#include "core/format/archive/zip_writer.h"
#include "core/integrity/crc32.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;
using archive::ZipFraming;
using archive::ZipWriter;

constexpr std::string_view kStorageName = "archive/data/0";
constexpr uint32_t kOneSum = 0;
constexpr uint32_t kOtherSum = UINT32_MAX;

using Record = ArchiveText;
// Twenty digits say which records there are, twenty their checksums; any are taken.
constexpr std::string_view kTensorId = "1572819951185464302600000000000000000000";
constexpr std::string_view kValueId = "0290846867776292310400000000000000000000";
constexpr Record kFormatVersion{"archive/.format_version", "1"};
constexpr Record kAlignment{"archive/.storage_alignment", "64"};
constexpr std::string_view kIdName = "archive/.data/serialization_id";

// Of the storages that have a type of their own; others are bytes with the dtype beside them.
std::string_view storage_class(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "FloatStorage";
    case DType::kFloat64:
      return "DoubleStorage";
    case DType::kFloat16:
      return "HalfStorage";
    case DType::kBfloat16:
      return "BFloat16Storage";
    case DType::kInt8:
      return "CharStorage";
    case DType::kInt16:
      return "ShortStorage";
    case DType::kInt32:
      return "IntStorage";
    case DType::kInt64:
      return "LongStorage";
    case DType::kUint8:
      return "ByteStorage";
    case DType::kBool:
      return "BoolStorage";
    case DType::kComplex64:
      return "ComplexFloatStorage";
    case DType::kComplex128:
      return "ComplexDoubleStorage";
    default:
      return "";
  }
}

constexpr DType kUntyped[] = {
    DType::kUint16,         DType::kUint32,         DType::kUint64,
    DType::kComplex32,      DType::kFloat8E4m3fn,   DType::kFloat8E5m2,
    DType::kFloat8E4m3fnuz, DType::kFloat8E5m2fnuz, DType::kFloat8E8m0fnu,
};

void write_text(PickleWriter* pickle, std::string_view text) {
  pickle->text(text).memoize();
}

void write_extents(PickleWriter* pickle, std::span<const int64_t> extents) {
  if (extents.empty()) {
    pickle->empty_tuple();
    return;
  }
  if (extents.size() > 3) pickle->mark();
  for (const int64_t extent : extents) pickle->integer(extent);
  extents.size() > 3 ? pickle->tuple_to_mark() : pickle->tuple(extents.size());
  pickle->memoize();
}

Dims row_major_strides(std::span<const int64_t> sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

std::string tensor_pickle(DType dtype, std::span<const int64_t> sizes, uint64_t size_bytes) {
  PickleWriter pickle(PickleProtocol::k2);
  pickle_tensor({dtype, sizes, size_bytes, "0"}, &pickle);
  return std::move(pickle).finish();
}

class ItemWriter {
 public:
  explicit ItemWriter(Framing framing)
      : zip_(framing == Framing::kAligned ? ZipFraming::kPlain : ZipFraming::kTorch),
        is_stock_(framing == Framing::kStock) {}

  // payload_bytes: of data/0, or none.
  Status add(std::span<const std::byte> pickle, const uint64_t* payload_bytes) {
    SHW_RETURN_IF_ERROR(add_bytes(kArchivePickleName, pickle));
    if (is_stock_) SHW_RETURN_IF_ERROR(add_text(kFormatVersion));
    if (is_stock_) SHW_RETURN_IF_ERROR(add_text(kAlignment));
    SHW_RETURN_IF_ERROR(add_text(kArchiveByteOrder));
    if (payload_bytes != nullptr) {
      SHW_ASSIGN_OR_RETURN(payload_, zip_.add(kStorageName, *payload_bytes));
      bytes_.emplace_back();
    }
    SHW_RETURN_IF_ERROR(add_text(kArchiveVersion));
    if (!is_stock_) return {};
    return add_text({kIdName, payload_bytes == nullptr ? kValueId : kTensorId});
  }

  void set_payload_sum(uint32_t sum) { zip_.set_crc(payload_, sum); }
  // All but the payload, which lies between them; without one all is front.
  std::vector<std::byte> front() const { return render(0, payload_ + 1, true); }
  std::vector<std::byte> behind() const { return render(payload_, zip_.entry_count(), false); }
  std::vector<std::byte> all() const {
    std::vector<std::byte> bytes = render(0, zip_.entry_count(), true);
    const std::vector<std::byte> end = zip_.end();
    bytes.insert(bytes.end(), end.begin(), end.end());
    return bytes;
  }

 private:
  Status add_bytes(std::string_view name, std::span<const std::byte> bytes) {
    SHW_ASSIGN_OR_RETURN(const size_t entry, zip_.add(name, bytes.size()));
    zip_.set_crc(entry, integrity::crc32(0, bytes));
    bytes_.push_back(bytes);
    return {};
  }
  Status add_text(const Record& record) {
    return add_bytes(record.name, std::as_bytes(std::span(record.text)));
  }

  // Entries [first, last). front: up to the payload of the last one, where it has one.
  std::vector<std::byte> render(size_t first, size_t last, bool is_front) const {
    std::vector<std::byte> out;
    const auto append = [&out](std::span<const std::byte> part) {
      out.insert(out.end(), part.begin(), part.end());
    };
    for (size_t entry = first; entry < last; ++entry) {
      const bool begins_here = is_front || entry != payload_;
      if (begins_here) append(zip_.header(entry));
      append(bytes_[entry]);
      if (is_front && entry == payload_) return out;
      append(zip_.trailer(entry));
    }
    if (!is_front) append(zip_.end());
    return out;
  }

  ZipWriter zip_;
  bool is_stock_;
  size_t payload_ = SIZE_MAX - 1;
  std::vector<std::span<const std::byte>> bytes_;  // of each entry; none of the payload
};

std::vector<uint32_t> differences(std::span<const std::byte> one,
                                  std::span<const std::byte> other) {
  std::vector<uint32_t> places;
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] == other[i]) continue;
    places.push_back(static_cast<uint32_t>(i));
    i += sizeof(uint32_t) - 1;
  }
  return places;
}

}  // namespace

// As torch.save 2.15 pickles a contiguous tensor.
void pickle_tensor(const TensorToPickle& tensor, PickleWriter* out) {
  const std::string_view typed = storage_class(tensor.dtype);
  PickleWriter& pickle = *out;
  pickle.global("torch._utils", typed.empty() ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  pickle.mark().mark();
  write_text(&pickle, "storage");
  if (typed.empty()) {
    pickle.global("torch.storage", "UntypedStorage");
  } else {
    pickle.global("torch", typed);
  }
  write_text(&pickle, tensor.storage_key);
  write_text(&pickle, "cpu");
  const auto elements = static_cast<int64_t>(tensor.size_bytes);
  pickle.integer(typed.empty() ? elements : elements / (dtype_bits(tensor.dtype) / 8));
  pickle.tuple_to_mark().memoize();
  pickle.persistent_id().integer(0);
  write_extents(&pickle, tensor.sizes);
  write_extents(&pickle, row_major_strides(tensor.sizes));
  pickle.boolean(false).global("collections", "OrderedDict").empty_tuple().reduce().memoize();
  if (typed.empty())
    pickle.global("torch", tensor.dtype == DType::kFloat4E2m1fn
                               ? std::string_view("float4_e2m1fn_x2")
                               : dtype_name(tensor.dtype));
  pickle.tuple_to_mark().memoize();
  pickle.reduce().memoize();
}

Result<TorchElements> torch_elements(DType dtype) {
  if (dtype == DType::kFloat4E2m1fn) return TorchElements{"float4_e2m1fn_x2", true};
  if (!storage_class(dtype).empty() || std::ranges::find(kUntyped, dtype) != std::end(kUntyped))
    return TorchElements{dtype_name(dtype), false};
  return unimplemented(
      fmt::format("torch has no tensors of {}; save in the native format", dtype_name(dtype)));
}

Result<Dims> torch_extents(const TorchElements& elements, std::span<const int64_t> extents) {
  Dims counted(extents);
  if (!elements.is_pairs) return counted;
  if (extents.empty() || extents.back() % 2 != 0)
    return unimplemented("torch stores pairs of 4-bit numbers, of which one would be cut");
  counted[extents.size() - 1] /= 2;
  return counted;
}

Result<Wrapping> wrap_tensor(Framing framing, DType dtype, std::span<const int64_t> sizes,
                             uint64_t size_bytes) {
  const std::string pickle = tensor_pickle(dtype, sizes, size_bytes);
  ItemWriter writer(framing);
  SHW_RETURN_IF_ERROR(writer.add(std::as_bytes(std::span(pickle)), &size_bytes));
  writer.set_payload_sum(kOtherSum);
  const std::vector<std::byte> other_front = writer.front();
  const std::vector<std::byte> other_behind = writer.behind();
  writer.set_payload_sum(kOneSum);
  Wrapping wrapping;
  wrapping.front = writer.front();
  wrapping.behind = writer.behind();
  wrapping.front_checksums = differences(wrapping.front, other_front);
  wrapping.behind_checksums = differences(wrapping.behind, other_behind);
  return wrapping;
}

Result<std::vector<std::byte>> wrap_value(Framing framing, std::span<const std::byte> pickle) {
  ItemWriter writer(framing);
  SHW_RETURN_IF_ERROR(writer.add(pickle, nullptr));
  return writer.all();
}

}  // namespace shardwright::format::torch_dcp
