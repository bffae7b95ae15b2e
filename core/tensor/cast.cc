// SPDX-License-Identifier: Apache-2.0
//
// Two stages over small blocks: decode the source into the widest type of its class (signed,
// unsigned, real), then encode the target from that. 21 decoders and 3 x 21 encoders stand for 441
// pairs.
#include "core/tensor/cast.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "core/tensor/minifloat_internal.h"
#include "core/tensor/number_kernel_internal.h"

namespace shardwright {
namespace {

constexpr size_t kBlockElements = 256;

// Values of one block; only the array of the class is in use.
enum class NumberClass { kSigned, kUnsigned, kReal };
struct Block {
  NumberClass number_class = NumberClass::kReal;
  size_t count = 0;
  std::array<int64_t, kBlockElements> signed_values;
  std::array<uint64_t, kBlockElements> unsigned_values;
  std::array<double, kBlockElements> real_values;
};

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof(T));
}

// Largest double below 2^63 and 2^64 are their bounds here: doubles of that size are far apart.
constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTwoTo64 = 18446744073709551616.0;

template <typename To>
To saturate(int64_t value) {
  if constexpr (std::is_signed_v<To>) {
    return static_cast<To>(
        std::clamp<int64_t>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else {
    if (value <= 0) return 0;
    return static_cast<To>(
        std::min<uint64_t>(static_cast<uint64_t>(value), std::numeric_limits<To>::max()));
  }
}

template <typename To>
To saturate(uint64_t value) {
  return static_cast<To>(std::min<uint64_t>(value, uint64_t{std::numeric_limits<To>::max()}));
}

template <typename To>
To saturate(double value) {
  if (std::isnan(value)) return 0;
  if constexpr (std::is_signed_v<To>) {
    if (value >= kTwoTo63) return std::numeric_limits<To>::max();
    if (value < -kTwoTo63) return std::numeric_limits<To>::min();
    return saturate<To>(static_cast<int64_t>(value));
  } else {
    if (value >= kTwoTo64) return std::numeric_limits<To>::max();
    if (value <= 0) return 0;
    return saturate<To>(static_cast<uint64_t>(value));
  }
}

// The nearest double, except that lost bits leave the last bit odd. A second rounding to 24 bits or
// fewer then gives what one rounding of the integer would give.
double sticky_double(uint64_t magnitude) {
  const int32_t width = 64 - std::countl_zero(magnitude);
  const int32_t excess = width - (internal::kDoubleMantissaBits + 1);
  if (excess <= 0) return static_cast<double>(magnitude);
  const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
  const uint64_t kept = (magnitude >> excess) | (lost != 0 ? 1 : 0);
  return static_cast<double>(kept) * internal::power_of_two(excess);
}

double sticky_double(int64_t value) {
  return value < 0 ? -sticky_double(uint64_t{0} - static_cast<uint64_t>(value))
                   : sticky_double(static_cast<uint64_t>(value));
}

double sticky_double(double value) {
  return value;
}

// One codec per dtype: Stored, the class, decode and encode from each class.
template <typename T>
struct IntegerCodec {
  using Stored = T;
  static auto decode(T value) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<int64_t>(value);
    } else {
      return static_cast<uint64_t>(value);
    }
  }
  template <typename From>
  static T encode(From value) {
    return saturate<T>(value);
  }
};

struct BoolCodec {
  using Stored = uint8_t;
  static uint64_t decode(uint8_t value) { return value != 0 ? 1 : 0; }
  template <typename From>
  static uint8_t encode(From value) {
    return value == From{0} ? 0 : 1;
  }
};

template <typename T>
struct FloatCodec {
  using Stored = T;
  static double decode(T value) { return static_cast<double>(value); }
  template <typename From>
  static T encode(From value) {
    return static_cast<T>(value);
  }
};

template <internal::MinifloatFormat F>
struct MinifloatCodec {
  using Stored = std::conditional_t<F.exponent_bits + F.mantissa_bits == 7, uint8_t, uint16_t>;
  static double decode(Stored code) { return internal::decode_minifloat<F>(code); }
  template <typename From>
  static Stored encode(From value) {
    return static_cast<Stored>(internal::encode_minifloat<F>(sticky_double(value)));
  }
};

struct E8m0Codec {
  using Stored = uint8_t;
  static double decode(uint8_t code) { return internal::decode_e8m0(code); }
  template <typename From>
  static uint8_t encode(From value) {
    return static_cast<uint8_t>(internal::encode_e8m0(sticky_double(value)));
  }
};

template <typename Codec>
void decode_block(const std::byte* source, size_t count, Block* block) {
  using Stored = typename Codec::Stored;
  using Wide = decltype(Codec::decode(Stored{}));
  const auto fill = [&](auto& values) {
    for (size_t i = 0; i < count; ++i)
      values[i] = Codec::decode(load<Stored>(source + i * sizeof(Stored)));
  };
  block->count = count;
  if constexpr (std::is_same_v<Wide, int64_t>) {
    block->number_class = NumberClass::kSigned;
    fill(block->signed_values);
  } else if constexpr (std::is_same_v<Wide, uint64_t>) {
    block->number_class = NumberClass::kUnsigned;
    fill(block->unsigned_values);
  } else {
    block->number_class = NumberClass::kReal;
    fill(block->real_values);
  }
}

template <typename Codec>
void encode_block(const Block& block, std::byte* target) {
  using Stored = typename Codec::Stored;
  const auto write = [&](const auto& values) {
    for (size_t i = 0; i < block.count; ++i) {
      store<Stored>(Codec::encode(values[i]), target + i * sizeof(Stored));
    }
  };
  switch (block.number_class) {
    case NumberClass::kSigned:
      return write(block.signed_values);
    case NumberClass::kUnsigned:
      return write(block.unsigned_values);
    case NumberClass::kReal:
      return write(block.real_values);
  }
}

struct Codec {
  void (*decode)(const std::byte* source, size_t count, Block* block) = nullptr;
  void (*encode)(const Block& block, std::byte* target) = nullptr;
};

template <typename C>
constexpr Codec codec() {
  return {&decode_block<C>, &encode_block<C>};
}

// Null functions for what cannot be cast. A flat table.
Codec codec_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return codec<BoolCodec>();
    case DType::kInt8:
      return codec<IntegerCodec<int8_t>>();
    case DType::kInt16:
      return codec<IntegerCodec<int16_t>>();
    case DType::kInt32:
      return codec<IntegerCodec<int32_t>>();
    case DType::kInt64:
      return codec<IntegerCodec<int64_t>>();
    case DType::kUint8:
      return codec<IntegerCodec<uint8_t>>();
    case DType::kUint16:
      return codec<IntegerCodec<uint16_t>>();
    case DType::kUint32:
      return codec<IntegerCodec<uint32_t>>();
    case DType::kUint64:
      return codec<IntegerCodec<uint64_t>>();
    case DType::kFloat16:
      return codec<MinifloatCodec<internal::kFloat16Format>>();
    case DType::kBfloat16:
      return codec<MinifloatCodec<internal::kBfloat16Format>>();
    case DType::kFloat32:
      return codec<FloatCodec<float>>();
    case DType::kFloat64:
      return codec<FloatCodec<double>>();
    case DType::kFloat8E3m4:
      return codec<MinifloatCodec<internal::kFloat8E3m4Format>>();
    case DType::kFloat8E4m3:
      return codec<MinifloatCodec<internal::kFloat8E4m3Format>>();
    case DType::kFloat8E4m3b11fnuz:
      return codec<MinifloatCodec<internal::kFloat8E4m3b11fnuzFormat>>();
    case DType::kFloat8E4m3fn:
      return codec<MinifloatCodec<internal::kFloat8E4m3fnFormat>>();
    case DType::kFloat8E4m3fnuz:
      return codec<MinifloatCodec<internal::kFloat8E4m3fnuzFormat>>();
    case DType::kFloat8E5m2:
      return codec<MinifloatCodec<internal::kFloat8E5m2Format>>();
    case DType::kFloat8E5m2fnuz:
      return codec<MinifloatCodec<internal::kFloat8E5m2fnuzFormat>>();
    case DType::kFloat8E8m0fnu:
      return codec<E8m0Codec>();
    default:
      return {};
  }
}

// The pairs that training uses most have loops of their own, chosen for this processor.
internal::CastFunction direct_cast(DType from, DType to) {
  const internal::NumberKernel& kernel = internal::best_number_kernel();
  if (from == DType::kFloat32 && to == DType::kBfloat16) return kernel.float32_to_bfloat16;
  if (from == DType::kBfloat16 && to == DType::kFloat32) return kernel.bfloat16_to_float32;
  if (from == DType::kFloat32 && to == DType::kFloat16) return kernel.float32_to_float16;
  if (from == DType::kFloat16 && to == DType::kFloat32) return kernel.float16_to_float32;
  return nullptr;
}

}  // namespace

bool cast_is_supported(DType from, DType to) {
  if (!dtype_is_valid(from) || !dtype_is_valid(to)) return false;
  return from == to || (codec_of(from).decode != nullptr && codec_of(to).encode != nullptr);
}

Status cast_elements(DType from, std::span<const std::byte> source, DType to,
                     std::span<std::byte> target) {
  if (!cast_is_supported(from, to)) {
    return unimplemented(
        fmt::format("elements of {} cannot be cast to {}", dtype_name(from), dtype_name(to)));
  }
  const bool same = from == to;
  const size_t from_bytes = same ? 1 : static_cast<size_t>(dtype_bits(from)) / 8;
  const size_t to_bytes = same ? 1 : static_cast<size_t>(dtype_bits(to)) / 8;
  const size_t count = source.size() / from_bytes;
  if (source.size() % from_bytes != 0 || target.size() % to_bytes != 0 ||
      target.size() / to_bytes != count) {
    return invalid_argument(
        fmt::format("{} bytes of {} and {} bytes of {} do not hold equally many elements",
                    source.size(), dtype_name(from), target.size(), dtype_name(to)));
  }
  if (same) {
    if (count > 0) std::memcpy(target.data(), source.data(), count);
    return {};
  }
  if (const internal::CastFunction direct = direct_cast(from, to)) {
    direct(reinterpret_cast<const unsigned char*>(source.data()), count,
           reinterpret_cast<unsigned char*>(target.data()));
    return {};
  }
  const auto decode = codec_of(from).decode;
  const auto encode = codec_of(to).encode;
  Block block;
  for (size_t at = 0; at < count; at += kBlockElements) {
    decode(source.data() + at * from_bytes, std::min(kBlockElements, count - at), &block);
    encode(block, target.data() + at * to_bytes);
  }
  return {};
}

}  // namespace shardwright
