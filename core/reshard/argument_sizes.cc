// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/argument_sizes.h"

#include <utility>

#include <fmt/format.h>

#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_tensor.h"

namespace shardwright::reshard {

namespace archive = format::archive;

Result<std::vector<std::byte>> set_argument_sizes(std::span<const std::byte> bytes,
                                                  std::string_view content_type,
                                                  const ArgumentSizes& sizes) {
  if (content_type != archive::kPickleType)
    return unimplemented(fmt::format("arguments stored as '{}'", content_type));
  archive::PickleOptions options;
  options.file = "arguments";
  options.vocabulary = archive::torch_vocabulary();
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(bytes, options));
  archive::PickleCopyRules rules;
  rules.protocol = archive::PickleProtocol::k2;  // of what torch's archives hold
  rules.vocabulary = options.vocabulary;
  rules.numbers = &sizes;
  const archive::PickleCopy copy = archive::copy_pickle(data, data.root(), rules);
  if (!copy.is_whole) return unimplemented("arguments with values that cannot be copied");
  const auto written = std::as_bytes(std::span(copy.bytes));
  return std::vector<std::byte>(written.begin(), written.end());
}

}  // namespace shardwright::reshard
