// SPDX-License-Identifier: Apache-2.0
//
// Digests over the kernel chosen at run time. The byte strings that keys and block digests are made
// of are described in docs/formats/native.md and held still by golden values in the tests. Pure
// functions, any thread.
#include "core/integrity/digest.h"

#include <mbedtls/sha256.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/limits.h"
#include "core/integrity/xxh3_kernel_internal.h"

namespace shardwright::integrity {
namespace internal {

const Xxh3Kernel& best_xxh3_kernel() {
#if defined(SHW_XXH3_WIDE)
  static const Xxh3Kernel* const kBest = __builtin_cpu_supports("avx512f") ? &kXxh3Avx512
                                         : __builtin_cpu_supports("avx2")  ? &kXxh3Avx2
                                                                           : &kXxh3Baseline;
  return *kBest;
#else
  return kXxh3Baseline;
#endif
}

}  // namespace internal

namespace {

static_assert(std::endian::native == std::endian::little, "keys are hashed in little-endian order");

// Small enough that a copied step is still in the second-level cache when it is hashed.
constexpr size_t kFusedStepBytes = 128 * 1024;

unsigned char* digest_bytes(Digest128* digest) {
  return reinterpret_cast<unsigned char*>(digest->data());
}

// Collects the fields of a key; the first bytes stay on the stack, so that common names allocate
// nothing.
class KeyBytes {
 public:
  void add(const void* bytes, size_t size_bytes) {
    if (size_bytes == 0) return;
    if (heap_.empty() && used_ + size_bytes <= sizeof(inline_)) {
      std::memcpy(inline_ + used_, bytes, size_bytes);
    } else {
      if (heap_.empty()) heap_.assign(inline_, inline_ + used_);
      const auto* first = static_cast<const unsigned char*>(bytes);
      heap_.insert(heap_.end(), first, first + size_bytes);
    }
    used_ += size_bytes;
  }
  void add_number(uint64_t value) { add(&value, sizeof(value)); }
  void add_text(std::string_view text) {
    add_number(text.size());
    add(text.data(), text.size());
  }
  void add_numbers(std::span<const int64_t> values) {
    add_number(values.size());
    add(values.data(), values.size_bytes());
  }
  Digest128 digest() const {
    Digest128 out;
    internal::best_xxh3_kernel().hash(heap_.empty() ? inline_ : heap_.data(), used_,
                                      digest_bytes(&out));
    return out;
  }

 private:
  size_t used_ = 0;
  unsigned char inline_[1024];
  std::vector<unsigned char> heap_;
};

}  // namespace

Digest128 xxh3_128(std::span<const std::byte> bytes) {
  Digest128 out;
  internal::best_xxh3_kernel().hash(bytes.data(), bytes.size(), digest_bytes(&out));
  return out;
}

Digest128 copy_and_digest(std::span<const std::byte> source, std::span<std::byte> target) {
  const internal::Xxh3Kernel& kernel = internal::best_xxh3_kernel();
  const size_t total = std::min(source.size(), target.size());
  Digest128 out;
  if (total <= kFusedStepBytes) {
    if (total != 0) std::memcpy(target.data(), source.data(), total);
    kernel.hash(target.data(), total, digest_bytes(&out));
    return out;
  }
  internal::Xxh3State state;
  kernel.reset(&state);
  for (size_t done = 0; done < total;) {
    const size_t step = std::min(kFusedStepBytes, total - done);
    std::memcpy(target.data() + done, source.data() + done, step);
    kernel.update(&state, target.data() + done,
                  step);  // the copy is what gets stored, so the copy is hashed
    done += step;
  }
  kernel.digest(&state, digest_bytes(&out));
  return out;
}

Digest128 chunk_key(const ChunkIdentity& identity) {
  KeyBytes key;
  key.add_text(identity.generation);
  key.add_text(identity.name);
  key.add_text(identity.content);
  key.add_number(static_cast<uint64_t>(int64_t{identity.rank}));
  key.add_numbers(identity.shape);
  if (identity.box != nullptr) {
    key.add_numbers(identity.box->offsets.span());
    key.add_numbers(identity.box->sizes.span());
  }
  return key.digest();
}

Digest128 block_digest(const Digest128& payload, const Digest128& key, uint64_t block_number,
                       uint64_t block_bytes) {
  unsigned char mixed[48];
  std::memcpy(mixed, payload.data(), 16);
  std::memcpy(mixed + 16, key.data(), 16);
  std::memcpy(mixed + 32, &block_number, 8);
  std::memcpy(mixed + 40, &block_bytes, 8);
  Digest128 out;
  internal::best_xxh3_kernel().hash(mixed, sizeof(mixed), digest_bytes(&out));
  return out;
}

uint64_t block_count(uint64_t chunk_bytes) {
  return chunk_bytes / kDigestBlockBytes + (chunk_bytes % kDigestBlockBytes != 0 ? 1 : 0);
}

std::string_view algorithm_name(TensorDigestAlgorithm algorithm) {
  return algorithm == TensorDigestAlgorithm::kSha256 ? "sha256" : "xxh3";
}

struct TensorDigester::Stream {
  TensorDigestAlgorithm algorithm = TensorDigestAlgorithm::kXxh3;
  internal::Xxh3State xxh3;
  mbedtls_sha256_context sha256;
};

TensorDigester::TensorDigester(TensorDigestAlgorithm algorithm)
    : stream_(std::make_unique<Stream>()) {
  stream_->algorithm = algorithm;
  internal::best_xxh3_kernel().reset(&stream_->xxh3);
  mbedtls_sha256_init(&stream_->sha256);
  // The software implementation cannot fail; its status exists for hardware replacements, which are
  // not built in.
  (void)mbedtls_sha256_starts_ret(&stream_->sha256, /*is224=*/0);
}

TensorDigester::~TensorDigester() {
  mbedtls_sha256_free(&stream_->sha256);
}

void TensorDigester::update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (stream_->algorithm == TensorDigestAlgorithm::kXxh3) {
    internal::best_xxh3_kernel().update(&stream_->xxh3, bytes.data(), bytes.size());
    return;
  }
  (void)mbedtls_sha256_update_ret(
      &stream_->sha256, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::vector<std::byte> TensorDigester::finish() {
  if (stream_->algorithm == TensorDigestAlgorithm::kXxh3) {
    std::vector<std::byte> out(16);
    internal::best_xxh3_kernel().digest(&stream_->xxh3,
                                        reinterpret_cast<unsigned char*>(out.data()));
    return out;
  }
  std::vector<std::byte> out(32);
  (void)mbedtls_sha256_finish_ret(&stream_->sha256, reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

}  // namespace shardwright::integrity
