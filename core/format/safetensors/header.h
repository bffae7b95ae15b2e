// SPDX-License-Identifier: Apache-2.0
//
// Header of one safetensors file: what lies in its buffer and where. Decoding proves that the
// tensors tile the buffer, that each has the bytes of its dtype and shape, and that each name is
// there once. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/catalog.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::safetensors {

inline constexpr uint64_t kLengthBytes = 8;  // little-endian, in front of the header
inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // of every reader and writer

struct HeaderTensor {
  plan::TextId name = 0;
  uint32_t shape_begin = 0;  // into Header::shapes
  uint8_t dimension_count = 0;
  DType dtype = DType::kInvalid;
  uint64_t begin = 0;  // in the buffer
  uint64_t end = 0;
};

struct Header {
  plan::TextTable names;
  std::vector<int64_t> shapes;
  std::vector<HeaderTensor> tensors;  // as they lie in the buffer
  std::map<std::string, std::string> metadata;
  std::string note;  // what is odd but allowed; "" = nothing

  std::string_view name(const HeaderTensor& tensor) const { return names.at(tensor.name); }
  std::span<const int64_t> shape(const HeaderTensor& tensor) const {
    return {shapes.data() + tensor.shape_begin, tensor.dimension_count};
  }
};

// Length of the header of a file that begins with these 8 bytes. file: what messages call it.
// DATA_LOSS for a length that is too large for the format or for the file.
Result<uint64_t> header_length(std::span<const std::byte> first_bytes, uint64_t file_bytes,
                               std::string_view file);
// text: the header behind its length; buffer_bytes: those behind it. DATA_LOSS with details file,
// tensor, expected and found; UNIMPLEMENTED for a dtype that is not known.
Result<Header> decode_header(std::string_view text, uint64_t buffer_bytes, std::string_view file);

// What every failure of a file says about the way on.
Status damaged_file(std::string_view file, std::string_view what);

}  // namespace shardwright::format::safetensors
