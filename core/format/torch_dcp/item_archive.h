// SPDX-License-Identifier: Apache-2.0
//
// Archives of torch.save around one tensor or one value, as items of a .distcp file are. The bytes
// of a tensor are written by others: here is what stands in front of them and behind. Behaviour of
// torch.save 2.15; what torch.load 2.4 to 2.15 takes. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/pickle_writer.h"
#include "core/format/saving.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::torch_dcp {

enum class Framing : uint8_t {
  // Four records: data.pkl, byteorder, data/0, version. Checksums stand in front of their records.
  kAligned,
  // The same with checksums behind the records, for files that are written from their beginning to
  // their end.
  kOrdered,
  // Byte for byte as torch.save of 2.15, but for the digits of .data/serialization_id.
  kStock,
};

// What a tensor of torch is called and counted in: sizes of the archive's tensor, which are those
// of the box, but for pairs of 4-bit numbers, which torch counts as one.
struct TorchElements {
  std::string_view dtype;  // "float32", "float4_e2m1fn_x2"
  bool is_pairs = false;
};
// UNIMPLEMENTED for dtypes that torch has not.
Result<TorchElements> torch_elements(DType dtype);
// Sizes or offsets as torch counts them. UNIMPLEMENTED when a pair would be cut.
Result<Dims> torch_extents(const TorchElements& elements, std::span<const int64_t> extents);

// A contiguous tensor as the next value of a pickle, which is all of the storage of that key.
struct TensorToPickle {
  DType dtype = DType::kInvalid;
  std::span<const int64_t> sizes;  // torch_extents
  uint64_t size_bytes = 0;
  std::string_view storage_key;
};
void pickle_tensor(const TensorToPickle& tensor, archive::PickleWriter* out);

// Records of every archive beside its storages.
struct ArchiveText {
  std::string_view name;
  std::string_view text;
};
inline constexpr std::string_view kArchivePickleName = "archive/data.pkl";
inline constexpr std::string_view kArchiveStoragesName = "archive/data/";
inline constexpr ArchiveText kArchiveByteOrder{"archive/byteorder", "little"};
inline constexpr ArchiveText kArchiveVersion{"archive/version", "3\n"};

// Around the packed bytes of a box of these sizes (torch_extents). The front has a multiple of 64
// bytes.
Result<Wrapping> wrap_tensor(Framing framing, DType dtype, std::span<const int64_t> sizes,
                             uint64_t size_bytes);
// The whole archive of a value that a pickle (data.pkl) says.
Result<std::vector<std::byte>> wrap_value(Framing framing, std::span<const std::byte> pickle);

}  // namespace shardwright::format::torch_dcp
