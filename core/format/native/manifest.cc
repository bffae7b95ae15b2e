// SPDX-License-Identifier: Apache-2.0
//
// Encode and decode of manifest.shw. Decoding is a fixed order of checks: length, identifier, own
// digest, size prefix, FlatBuffers verifier, version, fields, catalog, covers, files. Pure
// functions, any thread.
#include "core/format/native/manifest.h"
#include "core/base/generation_id.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/native/buffer_internal.h"
#include "core/format/native/file_items_internal.h"
#include "core/format/native/manifest_generated.h"
#include "core/format/native/native_format.h"
#include "core/plan/wire/catalog_wire.h"

namespace shardwright::format::native {
namespace {

using internal::decode_text;
using internal::encode_text;

constexpr char kManifestIdentifier[] = "SHWM";
constexpr size_t kManifestDigestBytes = sizeof(integrity::Digest128);
constexpr size_t kIdentifierPosition = 8;     // after size prefix and root offset
constexpr size_t kManifestTableBytes = 4096;  // the manifest's own table and texts, for estimates
constexpr size_t kLeastBytes = 12 + kManifestDigestBytes;

// Everything that both directions demand of the fields; catalog and extents have checks of their
// own.
// Owners of rank_local entries are ranks of the world.
template <typename Record>
Status check_owners(const std::vector<Record>& records, int32_t world_size) {
  for (const Record& record : records) {
    if (record.rank >= world_size) {
      return data_loss(
          fmt::format("an entry belongs to rank {} of {} ranks", record.rank, world_size));
    }
  }
  return {};
}

Status check_fields(const Manifest& manifest) {
  if (!is_generation_id(manifest.generation)) {
    return data_loss(fmt::format("the generation '{}' is not 32 lower-case hex digits",
                                 escape_text(manifest.generation, 64)));
  }
  for (const std::string& kept : manifest.kept_generations) {
    if (!is_generation_id(kept) || kept == manifest.generation)
      return data_loss("a kept generation is no other generation");
  }
  if (manifest.world_size < 1 || manifest.world_size > kMaxWorldSize) {
    return data_loss(fmt::format("the world size {} is not between 1 and {}", manifest.world_size,
                                 kMaxWorldSize));
  }
  if (!is_valid_utf8(manifest.writer)) return data_loss("the writer's name is not valid UTF-8");
  uint64_t metadata_bytes = 0;
  for (const auto& [key, value] : manifest.metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value)) {
      return data_loss(fmt::format("metadata '{}' is not valid UTF-8", escape_text(key, 128)));
    }
    metadata_bytes += key.size() + value.size();
  }
  if (metadata_bytes > kMaxMetadataBytes) {
    return data_loss(fmt::format("metadata of {} bytes is above the limit of {}", metadata_bytes,
                                 kMaxMetadataBytes));
  }
  int32_t last_rank = -1;
  for (const ManifestFile& file : manifest.files) {
    if (file.rank <= last_rank || file.rank >= manifest.world_size) {
      return data_loss(fmt::format("file ranks do not ascend within the world: {} after {} of {}",
                                   file.rank, last_rank, manifest.world_size));
    }
    last_rank = file.rank;
  }
  SHW_RETURN_IF_ERROR(check_owners(manifest.catalog.tensors, manifest.world_size));
  return check_owners(manifest.catalog.objects, manifest.world_size);
}

Status check_meaning(const Manifest& manifest, Proof proof) {
  SHW_RETURN_IF_ERROR(check_fields(manifest));
  if (proof == Proof::kWhole)
    SHW_RETURN_IF_ERROR(plan::prove_all_covers(manifest.catalog, plan::Copies::kAllowed));
  return internal::FileItems::create(manifest.catalog, manifest.files).status();
}

flatbuffers::Offset<wire::Manifest> encode_table(flatbuffers::FlatBufferBuilder* builder,
                                                 const Manifest& manifest) {
  const flatbuffers::Offset<wire::Catalog> catalog(plan::encode_catalog(builder, manifest.catalog));
  std::vector<wire::ManifestFile> files;
  files.reserve(manifest.files.size());
  for (const ManifestFile& file : manifest.files) {
    files.emplace_back(file.size_bytes, file.index_position, file.index_bytes,
                       wire::encode_digest(file.index_digest), file.rank, 0);
  }
  const auto file_vector = builder->CreateVectorOfStructs(files);
  std::vector<flatbuffers::Offset<wire::MetadataPair>> pairs;
  for (const auto& [key, value] : manifest.metadata) {
    const auto stored_key = encode_text(builder, key);
    pairs.push_back(wire::CreateMetadataPair(*builder, stored_key, encode_text(builder, value)));
  }
  const auto pair_vector = builder->CreateVector(pairs);
  std::vector<flatbuffers::Offset<wire::KeptGeneration>> kept;
  kept.reserve(manifest.kept_generations.size());
  for (const std::string& each : manifest.kept_generations) {
    kept.push_back(wire::CreateKeptGeneration(*builder, encode_text(builder, each)));
  }
  const auto kept_vector = builder->CreateVector(kept);
  const auto writer = encode_text(builder, manifest.writer);
  const auto generation = encode_text(builder, manifest.generation);
  return wire::CreateManifest(*builder, kFormatMajor, kFormatMinor, kFormatMinor, generation,
                              kept_vector, manifest.world_size, manifest.created_unix_ns, writer,
                              !manifest.digests, pair_vector, file_vector, catalog);
}

Result<Manifest> decode_fields(const wire::Manifest* table) {
  Manifest manifest;
  manifest.generation = decode_text(table->generation());
  if (table->kept_generations() != nullptr) {
    for (const wire::KeptGeneration* each : *table->kept_generations()) {
      manifest.kept_generations.push_back(decode_text(each->generation()));
    }
  }
  manifest.world_size = table->world_size();
  manifest.created_unix_ns = table->created_unix_ns();
  manifest.writer = decode_text(table->writer());
  manifest.digests = !table->without_digests();
  if (table->metadata() != nullptr) {
    for (const wire::MetadataPair* each : *table->metadata()) {
      std::string key = decode_text(each->key());
      if (!manifest.metadata.emplace(key, decode_text(each->value())).second) {
        return data_loss(fmt::format("metadata key '{}' is there twice", escape_text(key, 128)));
      }
    }
  }
  if (table->files() != nullptr) {
    manifest.files.reserve(table->files()->size());
    for (size_t file = 0; file < table->files()->size(); ++file) {
      const auto record = wire::record_at(table->files(), file);
      if (record.reserved() != 0) return data_loss("a reserved field of a file is not zero");
      manifest.files.push_back({record.rank(), record.size_bytes(), record.index_position(),
                                record.index_bytes(), wire::decode_digest(record.index_digest())});
    }
  }
  if (table->catalog() == nullptr) return data_loss("the catalog is missing");
  SHW_ASSIGN_OR_RETURN(manifest.catalog, plan::decode_catalog(table->catalog()));
  return manifest;
}

// Whatever a deeper layer calls it, what does not hold in a stored manifest is damage.
Status as_damage(Status status) {
  if (status.ok() || status.code() == StatusCode::kDataLoss ||
      status.code() == StatusCode::kUnimplemented)
    return status;
  Status damage =
      data_loss(fmt::format("the manifest does not hold together: {}", status.message()));
  for (const StatusDetail& detail : status.details())
    damage = std::move(damage).with_detail(detail.key, detail.value);
  return damage;
}

}  // namespace

Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest) {
  uint64_t estimated = plan::catalog_wire_bytes(manifest.catalog) +
                       manifest.files.size() * sizeof(wire::ManifestFile) + kManifestTableBytes;
  for (const auto& [key, value] : manifest.metadata) estimated += key.size() + value.size() + 32;
  SHW_RETURN_IF_ERROR(plan::check_wire_size(estimated, "manifest"));
  Status sound = plan::check_catalog(manifest.catalog);
  if (sound.ok()) sound = check_meaning(manifest, Proof::kWhole);
  if (!sound.ok())
    return internal_error(
        fmt::format("a manifest to be written does not hold together: {}", sound.to_string()));

  flatbuffers::FlatBufferBuilder builder(static_cast<size_t>(estimated));
  builder.FinishSizePrefixed(encode_table(&builder, manifest), kManifestIdentifier);
  const auto* first = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  std::vector<std::byte> bytes(first, first + builder.GetSize());
  const integrity::Digest128 digest = integrity::xxh3_128(bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

Status check_manifest_ends(std::span<const std::byte> head, std::span<const std::byte> tail,
                           uint64_t size_bytes) {
  if (size_bytes < kLeastBytes || head.size() != kManifestHeadBytes ||
      tail.size() != kManifestTailBytes)
    return data_loss(fmt::format("a manifest of {} bytes is cut short", size_bytes));
  if (std::memcmp(head.data() + kIdentifierPosition, kManifestIdentifier, 4) != 0) {
    return invalid_argument("these bytes are no manifest: the identifier SHWM is missing")
        .with_detail("offset", fmt::to_string(kIdentifierPosition));
  }
  uint32_t length = 0;
  std::memcpy(&length, head.data(), sizeof(length));
  if (sizeof(length) + uint64_t{length} + kManifestDigestBytes != size_bytes) {
    return data_loss(fmt::format("a manifest of {} bytes says that it has {}", size_bytes,
                                 sizeof(length) + uint64_t{length} + kManifestDigestBytes))
        .with_detail("expected",
                     fmt::to_string(sizeof(length) + uint64_t{length} + kManifestDigestBytes))
        .with_detail("found", fmt::to_string(size_bytes));
  }
  const bool written =
      std::ranges::any_of(tail, [](std::byte each) { return each != std::byte{0}; });
  return written ? Status() : data_loss("the manifest's digest was never written");
}

Result<Manifest> decode_manifest(std::span<const std::byte> bytes, Proof proof) {
  if (bytes.size() < kLeastBytes) {
    return data_loss(fmt::format("a manifest of {} bytes is cut short: the least is {}",
                                 bytes.size(), kLeastBytes))
        .with_detail("length", fmt::to_string(bytes.size()));
  }
  if (std::memcmp(bytes.data() + kIdentifierPosition, kManifestIdentifier, 4) != 0) {
    return invalid_argument("these bytes are no manifest: the identifier SHWM is missing")
        .with_detail("offset", fmt::to_string(kIdentifierPosition));
  }
  const std::span<const std::byte> body = bytes.first(bytes.size() - kManifestDigestBytes);
  const std::span<const std::byte> stored = bytes.last(kManifestDigestBytes);
  const integrity::Digest128 found = integrity::xxh3_128(body);
  if (std::memcmp(stored.data(), found.data(), kManifestDigestBytes) != 0) {
    return data_loss("the manifest's own digest does not hold: it was damaged or cut")
        .with_detail("offset", "0")
        .with_detail("length", fmt::to_string(body.size()))
        .with_detail("expected", to_hex(stored))
        .with_detail("found", to_hex(found));
  }
  std::vector<std::byte> aligned;
  Result<std::span<const std::byte>> framed =
      plan::check_buffer_frame(body, kManifestIdentifier, &aligned);
  if (!framed.ok()) return as_damage(framed.status());
  const auto* data = reinterpret_cast<const uint8_t*>(framed->data());
  flatbuffers::Verifier verifier(data, framed->size(), internal::verifier_options(framed->size()));
  if (!wire::VerifySizePrefixedManifestBuffer(verifier)) {
    return data_loss("the manifest is not a well-formed buffer although its digest holds");
  }
  const wire::Manifest* table = wire::GetSizePrefixedManifest(data);
  SHW_RETURN_IF_ERROR(internal::check_version(
      {table->format_major(), table->format_minor(), table->minimum_reader_minor()}, "manifest"));
  Result<Manifest> manifest = decode_fields(table);
  if (!manifest.ok()) return as_damage(manifest.status());
  SHW_RETURN_IF_ERROR(as_damage(check_meaning(*manifest, proof)));
  return manifest;
}

}  // namespace shardwright::format::native
