// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/torch_archive.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::format::archive {
namespace {

constexpr std::string_view kPickleRecord = "data.pkl";
constexpr uint64_t kMaxSmallRecordBytes = 4096;
constexpr int kNewestVersion = 10;  // of torch.save's archives and of TorchScript's
constexpr size_t kEntriesLookedAt = 64;

}  // namespace

Result<TorchArchive> TorchArchive::open(const ArchiveBytes& bytes, uint64_t tail_bytes) {
  SHW_ASSIGN_OR_RETURN(ZipDirectory directory, ZipDirectory::read(bytes, tail_bytes));
  TorchArchive archive(std::move(directory));
  SHW_RETURN_IF_ERROR(archive.find_root(bytes));
  SHW_RETURN_IF_ERROR(archive.check_records(bytes));
  return archive;
}

// The first record says the root, as torch's own reader takes it.
Status TorchArchive::find_root(const ArchiveBytes& bytes) {
  if (directory_.size() > 0) {
    const std::string_view first = directory_.entry(0).name;
    root_ = std::string(first.substr(0, first.find('/') + 1));
  }
  if (!root_.empty() && directory_.find(root_ + std::string(kPickleRecord)).has_value()) {
    is_script_ = directory_.find(root_ + "constants.pkl").has_value();
    return {};
  }
  for (size_t i = 0; i < std::min(directory_.size(), kEntriesLookedAt); ++i) {
    if (directory_.entry(i).name.ends_with(".npy"))
      return unimplemented(fmt::format("'{}' is a numpy archive, which is recognised and cannot be "
                                       "read",
                                       escape_text(bytes.file)))
          .with_detail("file", bytes.file)
          .with_detail("format", "a numpy archive");
  }
  return invalid_argument(fmt::format("'{}' is no known checkpoint format: it is a zip archive "
                                      "without a pickle of torch.save",
                                      escape_text(bytes.file)))
      .with_detail("file", bytes.file);
}

Status TorchArchive::check_records(const ArchiveBytes& bytes) const {
  SHW_ASSIGN_OR_RETURN(const std::optional<std::string> order, text_of(bytes, "byteorder"));
  if (order.has_value() && *order != "little") {
    return unimplemented(fmt::format("file '{}' has numbers in the order '{}'; only little-endian "
                                     "ones can be read",
                                     escape_text(bytes.file), escape_text(*order, 32)))
        .with_detail("file", bytes.file);
  }
  SHW_ASSIGN_OR_RETURN(std::optional<std::string> version, text_of(bytes, "version"));
  if (!version.has_value()) {
    SHW_ASSIGN_OR_RETURN(version, text_of(bytes, ".data/version"));
  }
  if (!version.has_value()) return {};
  int number = 0;
  const auto [end, error] =
      std::from_chars(version->data(), version->data() + version->size(), number);
  if (error == std::errc() && number <= kNewestVersion) return {};
  return unimplemented(fmt::format("file '{}' is of version '{}' of torch's archives; versions up "
                                   "to {} can be read",
                                   escape_text(bytes.file), escape_text(*version, 32),
                                   kNewestVersion))
      .with_detail("file", bytes.file);
}

Result<std::optional<std::string>> TorchArchive::text_of(const ArchiveBytes& bytes,
                                                         std::string_view record) const {
  const auto found = directory_.find(root_ + std::string(record));
  if (!found.has_value()) return std::optional<std::string>();
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> payload,
                       read_payload(bytes, directory_.entry(*found), kMaxSmallRecordBytes));
  return std::optional<std::string>(std::in_place, reinterpret_cast<const char*>(payload.data()),
                                    payload.size());
}

Result<std::vector<std::byte>> TorchArchive::read_pickle(const ArchiveBytes& bytes) const {
  const auto found = directory_.find(root_ + std::string(kPickleRecord));
  return read_payload(bytes, directory_.entry(*found), kMaxTorchPickleBytes);
}

std::optional<ZipEntry> TorchArchive::storage(std::string_view key) const {
  const auto found = directory_.find(fmt::format("{}data/{}", root_, key));
  return found.has_value() ? std::optional(directory_.entry(*found)) : std::nullopt;
}

}  // namespace shardwright::format::archive
