// SPDX-License-Identifier: Apache-2.0
//
// Errors and options of the contract's interpreter.
#include "tests/bindings/c/interpreter.h"

namespace contract {

// Takes the address: the value is written by the call that gives the status, in the same expression.
void check(shw_status status, shw_error** error) {
  if (status == SHW_OK) return;
  Failed failed{status, *error != nullptr ? shw_error_message(*error, nullptr) : "", {}};
  for (uint64_t i = 0; i < shw_error_detail_count(*error); ++i) {
    shw_error_detail detail{};
    if (shw_error_detail_at(*error, i, &detail) == SHW_OK)
      failed.details[detail.key] = detail.value;
  }
  shw_error_release(*error);
  *error = nullptr;
  throw failed;
}

SaveOptions::SaveOptions(const Json& words) {
  options.overwrite =
      text_of(words, "overwrite") == "refuse" ? SHW_OVERWRITE_REFUSE : SHW_OVERWRITE_REPLACE;
  options.owner =
      text_of(words, "owner") == "lowest_rank" ? SHW_OWNER_LOWEST_RANK : SHW_OWNER_BALANCED;
  options.format = text_of(words, "format") == "torch_dcp" ? SHW_FORMAT_TORCH_DCP : SHW_FORMAT_AUTO;
  if (member(words, "deadline").is_number()) {
    options.deadline_ns = static_cast<int64_t>(member(words, "deadline").get<double>() * 1e9);
  }
  offsets.push_back(0);
  if (!member(words, "metadata").is_object()) return;
  for (const auto& [key, value] : member(words, "metadata").items()) {
    metadata += key;
    offsets.push_back(metadata.size());
    metadata += text_of(value);
    offsets.push_back(metadata.size());
  }
  options.metadata = metadata.data();
  options.metadata_offsets = offsets.data();
  options.metadata_count = offsets.size() / 2;
}

shw_load_options load_options(const Json& words) {
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  options.missing = text_of(words, "missing") == "report" ? SHW_MISSING_REPORT : SHW_MISSING_ERROR;
  options.cast = text_of(words, "cast") == "allow" ? SHW_CAST_ALLOW : SHW_CAST_ERROR;
  if (text_of(words, "shape") == "crop_and_pad") options.shape = SHW_SHAPE_CROP_AND_PAD;
  return options;
}

}  // namespace contract
