// SPDX-License-Identifier: Apache-2.0
//
// Checks of options, and the text that ranks compare. Pure functions.
#include "core/exec/options.h"

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/options_text.h"
#include "core/plan/save/merge_policy.h"
#include "core/plan/save_plan.h"

namespace shardwright::exec {
namespace {

constexpr int32_t kMaxKeepGenerations = 1000;
constexpr uint32_t kModeMask = 07777;
constexpr size_t kShownTextBytes = 256;  // of one metadata text in a line that ranks compare

template <typename Enum>
Status check_word(Enum value, Enum last, std::string_view option) {
  const auto number = static_cast<int32_t>(value);
  if (number >= 0 && number <= static_cast<int32_t>(last)) return {};
  return invalid_argument(fmt::format("option '{}' has no value {}", option, number))
      .with_detail("parameter", option);
}

Status bad_value(std::string_view option, std::string text) {
  return invalid_argument(std::move(text)).with_detail("parameter", option);
}

Status check_metadata(const std::map<std::string, std::string>& metadata) {
  uint64_t bytes = 0;
  for (const auto& [key, value] : metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value)) {
      return bad_value("metadata", fmt::format("metadata '{}' is not valid UTF-8",
                                               escape_text(key, kShownTextBytes)));
    }
    bytes += key.size() + value.size();
  }
  if (bytes <= kMaxMetadataBytes) return {};
  return bad_value("metadata", fmt::format("metadata of {} bytes is above the limit of {}", bytes,
                                           kMaxMetadataBytes))
      .with_detail("limit", fmt::to_string(kMaxMetadataBytes));
}

std::string_view exchange_word(ExchangeRule rule) {
  switch (rule) {
    case ExchangeRule::kAuto:
      return "auto";
    case ExchangeRule::kOff:
      return "off";
    case ExchangeRule::kAlways:
      return "always";
  }
  return "unknown";
}

// One line however long or odd the text is: what is not shown is in the digest.
std::string comparable(const std::string& text) {
  if (text.size() <= kShownTextBytes) return escape_text(text, 4 * kShownTextBytes);
  return fmt::format("{} ({} bytes, digest {})", escape_text(text, kShownTextBytes), text.size(),
                     to_hex(plan::options_text_digest(text)));
}

}  // namespace

std::string shared_options_text(const SaveOptions& options) {
  std::string text = plan::save_rules_text(options.rules);
  text += fmt::format("overwrite={}\n",
                      options.overwrite == Overwrite::kReplace ? "replace" : "refuse");
  text += fmt::format("durability={}\n", options.durability == Durability::kFull ? "full" : "none");
  text += fmt::format("digests={}\n", options.digests ? "on" : "off");
  text += fmt::format("keep_generations={}\n", options.keep_generations);
  text += fmt::format("file_mode={:o}\n", options.file_mode);
  text += fmt::format("format={}\n", escape_text(options.format));
  if (options.max_shard_bytes != 0)
    text += fmt::format("max_shard_size={}\n", options.max_shard_bytes);
  if (options.common_as_object) text += "common=object\n";
  if (options.lists_digests) text += "integrity=sha256\n";
  for (const auto& [key, value] : options.metadata)
    text += fmt::format("metadata[{}]={}\n", comparable(key), comparable(value));
  return text;
}

std::string shared_options_text(const LoadOptions& options) {
  const auto rules = [](const auto& each, char between) {
    return fmt::format("missing={1}{0}unexpected={2}{0}cast={3}{0}shape={4}", between,
                       each.missing == plan::MissingRule::kError ? "error" : "report",
                       each.unexpected == plan::UnexpectedRule::kError ? "error" : "report",
                       each.cast == plan::CastRule::kError ? "error" : "allow",
                       each.shape == plan::ShapeRule::kError ? "exact" : "crop_and_pad");
  };
  std::string text = rules(options.rules, '\n');
  text += fmt::format("\nverify={}\npreset={}\n",
                      options.verify == VerifyRule::kOnRead ? "on_read" : "off",
                      static_cast<int32_t>(options.rules.preset));
  text += fmt::format("exchange={}\n", exchange_word(options.exchange));
  for (const plan::StrictPattern& pattern : options.rules.strict)
    text += fmt::format("strict={}: {}\n", comparable(pattern.glob), rules(pattern, ' '));
  return text;
}

Status check_options(const SaveOptions& options) {
  SHW_RETURN_IF_ERROR(check_word(options.overwrite, Overwrite::kRefuse, "overwrite"));
  SHW_RETURN_IF_ERROR(check_word(options.durability, Durability::kNone, "durability"));
  SHW_RETURN_IF_ERROR(check_word(options.rules.owner, plan::OwnerRule::kAll, "owner"));
  SHW_RETURN_IF_ERROR(
      check_word(options.rules.verify_replicas, plan::VerifyReplicas::kOff, "verify_replicas"));
  SHW_RETURN_IF_ERROR(check_word(options.rules.preset, plan::Preset::kMegatron, "preset"));
  SHW_RETURN_IF_ERROR(plan::native_policy(options.rules.preset, options.rules.owner).status());
  for (const plan::KindPattern& pattern : options.rules.kinds)
    SHW_RETURN_IF_ERROR(check_word(pattern.kind, EntryKind::kRankLocal, "kind"));
  if (options.keep_generations < 1 || options.keep_generations > kMaxKeepGenerations) {
    return bad_value("keep_generations",
                     fmt::format("keep_generations is {}; it must be between 1 and {}",
                                 options.keep_generations, kMaxKeepGenerations));
  }
  if ((options.file_mode & ~kModeMask) != 0) {
    return bad_value(
        "file_mode",
        fmt::format("file_mode is {:o}; only permission bits are allowed (at most {:o})",
                    options.file_mode, kModeMask));
  }
  return check_metadata(options.metadata);
}

Status check_options(const LoadOptions& options) {
  SHW_RETURN_IF_ERROR(check_word(options.verify, VerifyRule::kOff, "verify"));
  SHW_RETURN_IF_ERROR(check_word(options.read_path, ReadPath::kBuffered, "read_path"));
  SHW_RETURN_IF_ERROR(check_word(options.exchange, ExchangeRule::kAlways, "exchange"));
  SHW_RETURN_IF_ERROR(check_word(options.rules.missing, plan::MissingRule::kReport, "missing"));
  SHW_RETURN_IF_ERROR(
      check_word(options.rules.unexpected, plan::UnexpectedRule::kError, "unexpected"));
  SHW_RETURN_IF_ERROR(check_word(options.rules.cast, plan::CastRule::kAllow, "cast"));
  SHW_RETURN_IF_ERROR(check_word(options.rules.shape, plan::ShapeRule::kCropAndPad, "shape"));
  for (const plan::StrictPattern& pattern : options.rules.strict) {
    SHW_RETURN_IF_ERROR(check_word(pattern.missing, plan::MissingRule::kReport, "strict"));
    SHW_RETURN_IF_ERROR(check_word(pattern.unexpected, plan::UnexpectedRule::kError, "strict"));
    SHW_RETURN_IF_ERROR(check_word(pattern.cast, plan::CastRule::kAllow, "strict"));
    SHW_RETURN_IF_ERROR(check_word(pattern.shape, plan::ShapeRule::kCropAndPad, "strict"));
  }
  return check_word(options.rules.preset, plan::Preset::kMegatron, "preset");
}

}  // namespace shardwright::exec
