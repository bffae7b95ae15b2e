// SPDX-License-Identifier: Apache-2.0
#include "core/collective/nccl/nccl_id.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "core/collective/nccl/nccl_library_internal.h"

namespace shardwright::collective {
namespace {

static_assert(sizeof(ncclUniqueId) == kNcclIdBytes);

// -1 for what is no digit.
int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::string> make_nccl_id(const std::string& library) {
  SHW_ASSIGN_OR_RETURN(const auto nccl, internal::NcclLibrary::open(library));
  ncclUniqueId id{};
  SHW_RETURN_IF_ERROR(nccl->status_of(nccl->functions().get_unique_id(&id), nullptr,
                                      "making the id of a communicator"));
  std::string text;
  for (const std::byte each : std::as_bytes(std::span(id.internal)))
    text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

Result<NcclId> read_nccl_id(std::string_view text) {
  const bool fits = text.size() == 2 * kNcclIdBytes &&
                    std::all_of(text.begin(), text.end(), [](char c) { return digit_of(c) >= 0; });
  if (!fits)
    return invalid_argument(fmt::format("the id of a communicator over NCCL is {} hexadecimal "
                                        "digits, made by rank 0, not these {} letters",
                                        2 * kNcclIdBytes, text.size()))
        .with_detail("parameter", "id");
  NcclId id{};
  for (size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<std::byte>(digit_of(text[2 * i]) * 16 + digit_of(text[2 * i + 1]));
  return id;
}

}  // namespace shardwright::collective
