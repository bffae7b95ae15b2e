// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/digest_sidecar.h"

#include <cstring>

#include "core/base/generation_id.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr std::string_view kMagic = "SHWDGST1";
constexpr uint64_t kCountsBytes = 4 * sizeof(uint64_t);
static_assert(sizeof(SidecarItem) == 16);

class Writer {
 public:
  Writer& number(uint64_t value) { return bytes(std::as_bytes(std::span(&value, 1))); }
  Writer& bytes(std::span<const std::byte> part) {
    out_.insert(out_.end(), part.begin(), part.end());
    return *this;
  }
  std::vector<std::byte>& out() { return out_; }

 private:
  std::vector<std::byte> out_;
};

// The caller has seen that there is enough.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_ = bytes_.subspan(sizeof(value));
    return value;
  }
  Digest128 digest() {
    Digest128 value{};
    std::memcpy(value.data(), bytes_.data(), value.size());
    bytes_ = bytes_.subspan(value.size());
    return value;
  }
  std::string text(size_t size) {
    const std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  template <typename Record>
  std::vector<Record> records(uint64_t count) {
    std::vector<Record> all(static_cast<size_t>(count));
    const size_t size = all.size() * sizeof(Record);
    if (size > 0) std::memcpy(all.data(), bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return all;
  }
  size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

bool fits(const SidecarItem& item, uint64_t digests) {
  return item.first_digest == SidecarItem::kNoDigest || item.first_digest <= digests;
}

Status damaged(std::string_view what) {
  return data_loss(std::string("the digests beside the index ") + std::string(what));
}

}  // namespace

std::vector<std::byte> encode_sidecar(const DigestSidecar& sidecar,
                                      std::span<const std::byte> index) {
  Writer body;
  body.out().reserve(static_cast<size_t>(kCountsBytes) +
                     (sidecar.chunks.size() + sidecar.objects.size() + sidecar.digests.size()) *
                         16);
  body.number(static_cast<uint64_t>(sidecar.created_unix_ns))
      .number(sidecar.chunks.size())
      .number(sidecar.objects.size())
      .number(sidecar.digests.size())
      .bytes(std::as_bytes(std::span(sidecar.chunks)))
      .bytes(std::as_bytes(std::span(sidecar.objects)))
      .bytes(std::as_bytes(std::span(sidecar.digests)));
  Writer all;
  all.bytes(std::as_bytes(std::span(kMagic)))
      .number(body.out().size())
      .bytes(integrity::xxh3_128(body.out()))
      .number(index.size())
      .bytes(integrity::xxh3_128(index))
      .bytes(std::as_bytes(std::span(sidecar.generation)));
  all.bytes(integrity::xxh3_128(all.out()));
  static_assert(kSidecarHeaderBytes == 8 + 8 + 16 + 8 + 16 + kGenerationDigits + 16 + 8);
  all.number(0);
  all.bytes(body.out());
  return std::move(all.out());
}

std::optional<SidecarHeader> decode_sidecar_header(std::span<const std::byte> header) {
  if (header.size() < kSidecarHeaderBytes) return std::nullopt;
  constexpr size_t kSummed = 8 + 8 + 16 + 8 + 16 + kGenerationDigits;
  Reader reader(header);
  if (reader.text(kMagic.size()) != kMagic) return std::nullopt;
  SidecarHeader decoded;
  decoded.body_bytes = reader.number();
  decoded.body_digest = reader.digest();
  decoded.index_bytes = reader.number();
  decoded.index_digest = reader.digest();
  decoded.generation = reader.text(kGenerationDigits);
  if (reader.digest() != integrity::xxh3_128(header.first(kSummed))) return std::nullopt;
  if (!is_generation_id(decoded.generation)) return std::nullopt;
  return decoded;
}

Result<DigestSidecar> decode_sidecar(const SidecarHeader& header, std::span<const std::byte> body) {
  if (body.size() != header.body_bytes || body.size() < kCountsBytes)
    return damaged("have another size than they say");
  if (integrity::xxh3_128(body) != header.body_digest) return damaged("are damaged");
  Reader reader(body);
  DigestSidecar sidecar;
  sidecar.generation = header.generation;
  sidecar.created_unix_ns = static_cast<int64_t>(reader.number());
  const uint64_t chunks = reader.number();
  const uint64_t objects = reader.number();
  const uint64_t digests = reader.number();
  const uint64_t most = reader.left() / 16;
  if (chunks > most || objects > most || digests > most ||
      (chunks + objects + digests) * 16 != reader.left())
    return damaged("count more than they have");
  sidecar.chunks = reader.records<SidecarItem>(chunks);
  sidecar.objects = reader.records<SidecarItem>(objects);
  sidecar.digests = reader.records<Digest128>(digests);
  for (const std::vector<SidecarItem>* items : {&sidecar.chunks, &sidecar.objects}) {
    for (const SidecarItem& item : *items) {
      if (!fits(item, digests)) return damaged("name a block that is not there");
    }
  }
  return sidecar;
}

}  // namespace shardwright::format::torch_dcp
