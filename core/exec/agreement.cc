// SPDX-License-Identifier: Apache-2.0
#include "core/exec/agreement_internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/digest.h"
#include "core/plan/shared_options.h"

namespace shardwright::exec::internal {
namespace {

constexpr size_t kSignatureBytes = sizeof(plan::Digest128);

std::string_view text_of(const plan::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string place_text(const format::Location& location) {
  const std::string& place = location.path.empty() ? location.prefix : location.path;
  return fmt::format("path={}\nstorage={}\n", escape_text(place),
                     escape_text(location.storage->name()));
}

plan::Bytes sign(std::span<const std::byte> bytes, std::string_view text) {
  const plan::Digest128 digest = plan::options_text_digest(text);
  const auto signature = std::as_bytes(std::span(digest));
  plan::Bytes made;
  made.reserve(bytes.size() + kSignatureBytes);
  made.insert(made.end(), bytes.begin(), bytes.end());
  made.insert(made.end(), signature.begin(), signature.end());
  return made;
}

Status check_signatures(collective::Exchange& exchange, uint32_t tag, std::string_view text,
                        std::vector<plan::Bytes>* all) {
  bool equal = true;
  for (const plan::Bytes& bytes : *all) {
    if (bytes.size() < kSignatureBytes)
      return internal_error("a rank brought too few bytes to the first meeting");
    equal = equal && std::ranges::equal(std::span(bytes).last(kSignatureBytes),
                                        std::span(all->front()).last(kSignatureBytes));
  }
  if (equal) {
    for (plan::Bytes& bytes : *all) bytes.resize(bytes.size() - kSignatureBytes);
    return {};
  }
  SHW_ASSIGN_OR_RETURN(const std::vector<plan::Bytes> texts,
                       exchange.gather_all(tag, Status(), std::as_bytes(std::span(text))));
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    return plan::options_differ({0, text_of(texts[0])},
                                {static_cast<int32_t>(rank), text_of(texts[rank])});
  }
  return internal_error("digests of equal options differ");
}

}  // namespace shardwright::exec::internal
