// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/file_names.h"

#include <charconv>

#include <fmt/format.h>

#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr std::string_view kDataSuffix = ".distcp";
constexpr std::string_view kDigestsSuffix = ".digests";

bool take_digits(std::string_view* text) {
  const size_t end = text->find_first_not_of("0123456789");
  if (end == 0 || text->empty()) return false;
  text->remove_prefix(end == std::string_view::npos ? text->size() : end);
  return true;
}

bool take(std::string_view beginning, std::string_view* text) {
  if (!text->starts_with(beginning)) return false;
  text->remove_prefix(beginning.size());
  return true;
}

// "HINT__R_K"; what stands behind it is left.
bool take_rank_and_number(std::string_view* name) {
  name->remove_prefix(hint_of(*name).size());
  return take("__", name) && take_digits(name) && take("_", name) && take_digits(name);
}

std::string_view generation_at(std::string_view text) {
  const std::string_view generation = text.substr(0, kGenerationDigits);
  const bool ends = text.size() <= kGenerationDigits || text[kGenerationDigits] == '.';
  return ends && is_generation_id(generation) ? generation : std::string_view();
}

}  // namespace

std::string data_file_name(const DataFile& file) {
  return fmt::format("{}__{}_{}.{}{}", file.hint, file.rank, file.number, file.generation,
                     kDataSuffix);
}

std::string data_file_name(int32_t rank, std::string_view generation) {
  return data_file_name(DataFile{rank, 0, generation});
}

std::optional<DataFile> parse_data_file_name(std::string_view name) {
  DataFile file;
  file.generation = generation_of_file(name);
  if (file.generation.empty()) return std::nullopt;
  file.hint = hint_of(name);
  std::string_view numbers = name.substr(file.hint.size());
  if (!take("__", &numbers)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto rank = std::from_chars(numbers.data(), end, file.rank);
  if (rank.ec != std::errc() || file.rank >= kMaxWorldSize) return std::nullopt;
  if (std::from_chars(rank.ptr + 1, end, file.number).ec != std::errc()) return std::nullopt;
  return data_file_name(file) == name ? std::optional(file) : std::nullopt;
}

std::string digests_file_name(std::string_view generation) {
  return fmt::format("{}{}{}", kOwnBeginning, generation, kDigestsSuffix);
}

std::string journal_file_name(std::string_view generation) {
  return fmt::format("{}{}.journal", kOwnBeginning, generation);
}

std::string_view hint_of(std::string_view name) {
  const size_t at = name.rfind("__");
  const std::string_view hint = name.substr(0, at == std::string_view::npos ? 0 : at);
  const bool is_part =
      !hint.starts_with('.') && hint.find_first_of(std::string_view("/\\\0", 3)) == hint.npos;
  return is_part ? hint : std::string_view();
}

bool is_data_file(std::string_view name) {
  if (!name.ends_with(kDataSuffix) || !take_rank_and_number(&name)) return false;
  return name == kDataSuffix || !generation_at(name.substr(1)).empty();
}

std::string_view generation_of_file(std::string_view name) {
  if (take(kOwnBeginning, &name)) return generation_at(name);
  std::string_view temporary = name;
  if (take(kIndexName, &temporary) && take(".", &temporary)) return generation_at(temporary);
  if (!name.ends_with(kDataSuffix)) return {};
  return take_rank_and_number(&name) && take(".", &name) ? generation_at(name) : std::string_view();
}

bool is_digests_file(std::string_view name) {
  const std::string_view generation = generation_of_file(name);
  return !generation.empty() && name == digests_file_name(generation);
}

}  // namespace shardwright::format::torch_dcp
