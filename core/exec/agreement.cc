// SPDX-License-Identifier: Apache-2.0
#include "core/exec/agreement_internal.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/plan/options_text.h"

namespace shardwright::exec::internal {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string place_text(const format::Location& location) {
  const std::string& place = location.path.empty() ? location.prefix : location.path;
  return fmt::format("path={}\nstorage={}\n", escape_text(place),
                     escape_text(location.storage->name()));
}

collective::Said said(std::string_view text) {
  return {plan::options_text_digest(text), std::as_bytes(std::span(text))};
}

Status agree_on_text(collective::Exchange& exchange, uint32_t tag, const Status& mine,
                     std::string_view text) noexcept {
  SHW_ASSIGN_OR_RETURN(const auto difference, exchange.compare(tag, mine, said(text)));
  if (!difference.has_value()) return {};
  return without_exceptions("comparing what ranks were told", [&] {
    return plan::options_differ(
        {0, text_of(difference->first)},
        {static_cast<int32_t>(difference->rank), text_of(difference->other)});
  });
}

}  // namespace shardwright::exec::internal
