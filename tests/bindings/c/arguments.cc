// SPDX-License-Identifier: Apache-2.0
//
// Errors and options of the contract's interpreter.
#include "tests/bindings/c/interpreter.h"

namespace contract {

// Takes the address: the value is written by the call that gives the status, in the same
// expression.
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
  Json rest = words.is_null() ? Json::object() : words;
  if (rest.contains("deadline"))
    options.deadline_ns = static_cast<int64_t>(rest["deadline"].get<double>() * 1e9);
  offsets.push_back(0);
  for (const auto& [key, value] : member(rest, "metadata").items()) {
    metadata += key;
    offsets.push_back(metadata.size());
    metadata += text_of(value);
    offsets.push_back(metadata.size());
  }
  options.metadata = metadata.data();
  options.metadata_offsets = offsets.data();
  options.metadata_count = offsets.size() / 2;
  for (const Json& pair : member(rest, "kind")) {
    globs += text_of(pair[0]);
    glob_offsets.push_back(globs.size());
    kinds.push_back(word_of("kind", text_of(pair[1])));
  }
  options.kind_globs = globs.data();
  options.kind_offsets = glob_offsets.data();
  options.kind_values = kinds.data();
  options.kind_count = kinds.size();
  rest.erase("kind");
  rest.erase("deadline");
  rest.erase("metadata");
  if (rest.contains("max_shard_size"))
    options.max_shard_size = rest["max_shard_size"].get<uint64_t>();
  rest.erase("max_shard_size");
  options.hold = member(rest, "hold") == true ? SHW_HOLD_ON : SHW_HOLD_OFF;
  rest.erase("hold");
  set_words(rest, {{"overwrite", &options.overwrite},
                   {"owner", &options.owner},
                   {"preset", &options.preset},
                   {"verify_replicas", &options.verify_replicas},
                   {"format", &options.format},
                   {"common", &options.common},
                   {"priority", &options.priority}});
}

shw_load_options load_options(const Json& words) {
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  set_words(words, {{"missing", &options.missing},
                    {"cast", &options.cast},
                    {"shape", &options.shape},
                    {"read_path", &options.read_path},
                    {"exchange", &options.exchange},
                    {"preset", &options.preset}});
  return options;
}

}  // namespace contract
