// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/listed_digests.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/json_events.h"
#include "core/integrity/digest.h"

namespace shardwright::format::megatron {
namespace {

constexpr size_t kMaxListDepth = 16;
constexpr size_t kHexDigits = 64;
constexpr size_t kShownDigits = 16;
constexpr size_t kReadBytes = size_t{1} << 20;

Status wrong_digests(std::string_view what) {
  return data_loss(fmt::format("file '{}' {}", kIntegrityName, what))
      .with_detail("file", kIntegrityName);
}

// Names stand directly in a directory.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && is_valid_utf8(name) &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

bool is_hex(std::string_view text) {
  return text.size() == kHexDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The texts of "algorithm" and of what is in "files".
class IntegrityTexts final : public JsonSink {
 public:
  Status open(bool is_object) override {
    if (depth_ == 1) {
      in_files_ = key_ == "files";
      if (in_files_ && !is_object) return wrong_digests("has no mapping of files");
      has_files_ = has_files_ || in_files_;
    }
    if (depth_ == 2 && in_files_) return no_digest();
    ++depth_;
    return {};
  }
  Status close() override {
    --depth_;
    if (depth_ == 1) in_files_ = false;
    return {};
  }
  Status key(std::string&& name) override {
    if (depth_ <= 2) key_ = std::move(name);
    return {};
  }
  Status text(std::string&& value) override {
    if (depth_ == 1 && key_ == "algorithm") algorithm_ = std::move(value);
    if (depth_ != 2 || !in_files_) return {};
    if (!is_plain_name(key_) || !is_hex(value)) return no_digest();
    const bool is_new = files_.emplace(key_, std::move(value)).second;
    return is_new ? Status() : wrong_digests(fmt::format("has '{}' twice", shown(key_)));
  }
  Status natural(uint64_t) override { return depth_ == 2 && in_files_ ? no_digest() : Status(); }
  Status other(std::string_view) override {
    return depth_ == 2 && in_files_ ? no_digest() : Status();
  }

  Result<std::map<std::string, std::string>> take() {
    if (algorithm_.empty() || !has_files_) return wrong_digests("names no algorithm, or no files");
    if (algorithm_ != "sha256") {
      return unimplemented(fmt::format("file '{}' has digests by '{}', and sha256 is compared",
                                       kIntegrityName, shown(algorithm_)))
          .with_detail("file", kIntegrityName);
    }
    return std::move(files_);
  }

 private:
  Status no_digest() const {
    return wrong_digests(fmt::format("has no digest for '{}'", shown(key_)));
  }

  size_t depth_ = 0;
  bool in_files_ = false;
  bool has_files_ = false;
  std::string key_;
  std::string algorithm_;
  std::map<std::string, std::string> files_;
};

// OK, or what is wrong with the file. lies_as: its name now.
Status compare(const Location& location, std::string_view lies_as, std::string_view name,
               std::string_view expected) {
  const Result<std::string> found = sha256_of(location, lies_as);
  const auto prefix = [](std::string_view digest) { return digest.substr(0, kShownDigits); };
  if (found.status().code() == StatusCode::kNotFound)
    return data_loss(fmt::format("file '{}' is missing, {} has {}... for it", escape_text(name),
                                 kIntegrityName, prefix(expected)))
        .with_detail("file", name);
  SHW_RETURN_IF_ERROR(found.status());
  if (*found == expected) return {};
  return data_loss(fmt::format("file '{}' is not what {} says: it has {}..., expected {}...",
                               escape_text(name), kIntegrityName, prefix(*found), prefix(expected)))
      .with_detail("file", name)
      .with_detail("expected", expected)
      .with_detail("found", *found);
}

}  // namespace

Result<std::map<std::string, std::string>> decode_integrity(std::span<const std::byte> bytes) {
  IntegrityTexts texts;
  const Status read =
      read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kMaxListDepth, &texts);
  if (!read.ok()) return read.detail("file").empty() ? wrong_digests(read.message()) : read;
  return texts.take();
}

std::string encode_integrity(const std::map<std::string, std::string>& files) {
  JsonWriter json;
  json.begin_object().key("algorithm").text("sha256").key("files").begin_object();
  for (const auto& [name, digest] : files) json.key(name).text(digest);
  json.end_object().end_object();
  return json.take();
}

std::string sha256_text(std::span<const std::byte> bytes) {
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kSha256);
  digester.update(bytes);
  return to_hex(digester.finish());
}

Result<std::string> sha256_of(const Location& location, std::string_view name) {
  SHW_ASSIGN_OR_RETURN(
      const std::unique_ptr<storage::StorageObject> object,
      location.storage->open(storage::join_key(location.prefix, name), storage::OpenOptions{}));
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object->stat());
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kSha256);
  std::vector<std::byte> part;
  for (uint64_t done = 0; done < stat.size_bytes; done += part.size()) {
    part.resize(static_cast<size_t>(std::min<uint64_t>(kReadBytes, stat.size_bytes - done)));
    SHW_RETURN_IF_ERROR(object->read_at(done, part));
    digester.update(part);
  }
  SHW_RETURN_IF_ERROR(object->close());
  return to_hex(digester.finish());
}

Result<std::vector<Status>> compare_listed(const Location& location, const PlacesOfNames& places) {
  const auto place_of = [&places](std::string_view name) -> std::string_view {
    const auto found = places.find(name);
    return found == places.end() ? name : std::string_view(found->second);
  };
  std::vector<Status> findings;
  const auto bytes = storage::read_all(*location.storage,
                                       storage::join_key(location.prefix, place_of(kIntegrityName)),
                                       kMaxIntegrityBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return findings;
  SHW_RETURN_IF_ERROR(bytes.status());
  const auto files = decode_integrity(*bytes);
  if (files.status().code() == StatusCode::kDataLoss) {
    findings.push_back(files.status());
    return findings;
  }
  SHW_RETURN_IF_ERROR(files.status());
  for (const auto& [name, expected] : *files) {
    const std::string_view lies_as = place_of(name);
    if (lies_as.empty()) continue;
    Status found = compare(location, lies_as, name, expected);
    if (!found.ok() && found.code() != StatusCode::kDataLoss) return found;
    if (!found.ok()) findings.push_back(std::move(found));
  }
  return findings;
}

}  // namespace shardwright::format::megatron
