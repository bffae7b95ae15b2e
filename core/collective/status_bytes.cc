// SPDX-License-Identifier: Apache-2.0
//
// Encoding cuts what is too long; decoding refuses what does not fit.
#include "core/collective/status_bytes_internal.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/without_exceptions.h"

namespace shardwright::collective::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "fields travel in little-endian order");

constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxDetailBytes = 1024;
constexpr size_t kBriefTextBytes = 256;

class Writer {
 public:
  void number(uint32_t value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof(value));
  }
  void flag(bool value) { bytes_.push_back(std::byte{value}); }
  void text(std::string_view text, size_t limit) {
    text = text.substr(0, limit);
    number(static_cast<uint32_t>(text.size()));
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  // Whether more fits for sure.
  bool has_room(size_t size_bytes) const {
    return bytes_.size() + size_bytes + 64 <= kMaxStatusBytes;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Into memory that is there; what does not fit is left out.
class BriefWriter {
 public:
  explicit BriefWriter(std::span<std::byte> room) : room_(room) {}
  void bytes(const void* data, size_t size_bytes) {
    if (size_bytes > 0) std::memcpy(room_.data() + used_, data, size_bytes);
    used_ += size_bytes;
  }
  void number(uint32_t value) { bytes(&value, sizeof(value)); }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes(text.data(), text.size());
  }
  size_t used() const { return used_; }

 private:
  std::span<std::byte> room_;
  size_t used_ = 0;
};

// Calls take(detail) for those that travel and fit into so many bytes one after the other; how
// many.
template <typename Take>
uint32_t each_that_fits(std::span<const StatusDetail> details, size_t left, const Take& take) {
  uint32_t count = 0;
  for (const StatusDetail& each : details) {
    const size_t size_bytes = 2 * sizeof(uint32_t) + each.key.size() + each.value.size();
    if (each.key == kHostException || size_bytes > left || count == kMaxStatusDetails) continue;
    left -= size_bytes;
    ++count;
    take(each);
  }
  return count;
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::optional<uint32_t> number() {
    uint32_t value = 0;
    if (bytes_.size() < sizeof(value)) return std::nullopt;
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_ = bytes_.subspan(sizeof(value));
    return value;
  }
  std::optional<bool> flag() {
    if (bytes_.empty() || std::to_integer<unsigned>(bytes_[0]) > 1) return std::nullopt;
    const bool value = bytes_[0] == std::byte{1};
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::optional<std::string> text() {
    const std::optional<uint32_t> size = number();
    if (!size.has_value() || *size > bytes_.size()) return std::nullopt;
    std::string value(reinterpret_cast<const char*>(bytes_.data()), *size);
    bytes_ = bytes_.subspan(*size);
    return value;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

bool is_failure_code(uint32_t code) {
  return code != 0 && status_code_name(static_cast<StatusCode>(code)) != "UNRECOGNISED";
}

std::optional<Status> read_status(Reader* reader) {
  const std::optional<uint32_t> code = reader->number();
  const std::optional<bool> retryable = reader->flag();
  const std::optional<uint32_t> message_count = reader->number();
  if (!code || !is_failure_code(*code) || !retryable || !message_count || *message_count == 0 ||
      *message_count > kMaxStatusMessages) {
    return std::nullopt;
  }
  std::vector<std::string> messages;
  for (uint32_t i = 0; i < *message_count; ++i) {
    std::optional<std::string> message = reader->text();
    if (!message) return std::nullopt;
    messages.push_back(std::move(*message));
  }
  Status status(static_cast<StatusCode>(*code), messages.back());
  const std::optional<uint32_t> detail_count = reader->number();
  if (!detail_count || *detail_count > kMaxStatusDetails) return std::nullopt;
  for (uint32_t i = 0; i < *detail_count; ++i) {
    const std::optional<std::string> key = reader->text();
    const std::optional<std::string> value = reader->text();
    if (!key || !value) return std::nullopt;
    status = std::move(status).with_detail(*key, *value);
  }
  if (!reader->at_end()) return std::nullopt;
  status = std::move(status).with_retryable(*retryable);
  for (size_t i = messages.size() - 1; i-- > 0;) status = std::move(status).annotated(messages[i]);
  return status;
}

}  // namespace

std::vector<std::byte> encode_status(const Status& status) {
  if (status.ok()) return {};
  std::vector<std::string_view> messages;
  for (const Status* each = &status; each != nullptr; each = each->cause())
    messages.push_back(each->message());
  if (messages.size() > kMaxStatusMessages) {
    // The first cause matters more than what the layers between were doing.
    messages[kMaxStatusMessages - 1] = messages.back();
    messages.resize(kMaxStatusMessages);
  }
  Writer writer;
  writer.number(static_cast<uint32_t>(status.code()));
  writer.flag(status.retryable());
  writer.number(static_cast<uint32_t>(messages.size()));
  for (const std::string_view message : messages)
    writer.text(message, kMaxTextBytes / (messages.size() > 8 ? 2 : 1));
  std::vector<const StatusDetail*> details;
  size_t size_bytes = 0;
  for (const StatusDetail& each : status.details()) {
    if (each.key == kHostException) continue;
    size_bytes += 2 * (sizeof(uint32_t) + kMaxDetailBytes);
    if (details.size() == kMaxStatusDetails || !writer.has_room(size_bytes)) break;
    details.push_back(&each);
  }
  writer.number(static_cast<uint32_t>(details.size()));
  for (const StatusDetail* each : details) {
    writer.text(each->key, kMaxDetailBytes);
    writer.text(each->value, kMaxDetailBytes);
  }
  return writer.take();
}

size_t encode_status_briefly(const Status& status,
                             std::span<std::byte, kBriefStatusBytes> room) noexcept {
  BriefWriter writer(room);
  writer.number(static_cast<uint32_t>(status.code()));
  const bool retryable = status.retryable();
  writer.bytes(&retryable, 1);
  writer.number(1);
  writer.text(status.message().substr(0, kBriefTextBytes));
  const size_t left = room.size() - writer.used() - sizeof(uint32_t);
  writer.number(each_that_fits(status.details(), left, [](const StatusDetail&) {}));
  each_that_fits(status.details(), left, [&](const StatusDetail& detail) {
    writer.text(detail.key);
    writer.text(detail.value);
  });
  return writer.used();
}

Status decode_status(std::span<const std::byte> bytes) {
  if (bytes.size() <= kMaxStatusBytes) {
    Reader reader(bytes);
    if (std::optional<Status> status = read_status(&reader)) return std::move(*status);
  }
  return internal_error("a rank failed, and the description of its failure cannot be read");
}

Status cause_for_others(const Status& cause) noexcept {
  return without_exceptions("aborting a collective", [&] {
    if (cause.ok()) return aborted("the collective was aborted");
    if (cause.detail(kHostException).empty()) return cause;
    return decode_status(encode_status(cause));
  });
}

}  // namespace shardwright::collective::internal
