// SPDX-License-Identifier: Apache-2.0
//
// Numbers of option values are equal on both sides; what has to be checked here is their range.
#include "capi/call_options.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "core/base/text.h"
#include "core/concurrency/cancellation.h"

namespace shardwright::capi {
namespace {

Result<std::string> format_text(int32_t format) {
  constexpr std::string_view kNames[] = {"native", "native", "torch-dcp", "safetensors",
                                         "megatron"};
  SHW_RETURN_IF_ERROR(option_in_range(format, SHW_FORMAT_MEGATRON, "format"));
  return std::string(kNames[format]);
}

Status read_kinds(const shw_save_options& options, plan::SaveRules* rules) {
  SHW_ASSIGN_OR_RETURN(const auto globs,
                       text_list_argument(options.kind_globs, options.kind_offsets,
                                          options.kind_count, "kind_globs"));
  SHW_ASSIGN_OR_RETURN(const auto kinds,
                       list_argument(options.kind_values, options.kind_count, "kind_values"));
  for (uint64_t i = 0; i < options.kind_count; ++i) {
    SHW_RETURN_IF_ERROR(option_in_range(kinds[i], SHW_KIND_RANK_LOCAL, "kind_values"));
    rules->kinds.push_back({std::string(globs.at(i)), static_cast<EntryKind>(kinds[i])});
  }
  return {};
}

// Key and value of pair i are texts 2i and 2i + 1.
Result<TextArray> metadata_texts(const shw_save_options& options) {
  if (options.metadata_count > INT64_MAX / 2) return bad_argument("metadata", "too many pairs");
  return text_list_argument(options.metadata, options.metadata_offsets, 2 * options.metadata_count,
                            "metadata");
}

Status read_metadata(const shw_save_options& options, exec::SaveOptions* to) {
  SHW_ASSIGN_OR_RETURN(const auto texts, metadata_texts(options));
  for (uint64_t i = 0; i < options.metadata_count; ++i) {
    const std::string_view key = texts.at(2 * i);
    const std::string_view value = texts.at(2 * i + 1);
    if (!is_valid_utf8(key) || !is_valid_utf8(value)) {
      return bad_argument("metadata", fmt::format("the pair '{}' is no UTF-8", escape_text(key)));
    }
    if (!to->metadata.emplace(key, value).second) {
      return already_exists(fmt::format("metadata has the key '{}' twice", escape_text(key)))
          .with_detail("parameter", "metadata");
    }
  }
  return {};
}

Status read_strict(const shw_load_options& options, plan::LoadRules* rules) {
  SHW_ASSIGN_OR_RETURN(const auto globs,
                       text_list_argument(options.strict_globs, options.strict_offsets,
                                          options.strict_count, "strict_globs"));
  if (options.strict_count > INT64_MAX / 64) return bad_argument("strict_rules", "too many");
  SHW_ASSIGN_OR_RETURN(const auto values, list_argument(options.strict_rules,
                                                        3 * options.strict_count, "strict_rules"));
  SHW_ASSIGN_OR_RETURN(
      const auto shapes,
      list_argument(options.strict_shapes,
                    options.strict_shapes == nullptr ? 0 : options.strict_count, "strict_shapes"));
  for (uint64_t i = 0; i < options.strict_count; ++i) {
    const int32_t* rule = &values[3 * i];
    SHW_RETURN_IF_ERROR(option_in_range(rule[0], SHW_MISSING_REPORT, "strict_rules"));
    SHW_RETURN_IF_ERROR(option_in_range(rule[1], SHW_UNEXPECTED_ERROR, "strict_rules"));
    SHW_RETURN_IF_ERROR(option_in_range(rule[2], SHW_CAST_ALLOW, "strict_rules"));
    const int32_t shape = shapes.empty() ? options.shape : shapes[i];
    SHW_RETURN_IF_ERROR(option_in_range(shape, SHW_SHAPE_CROP_AND_PAD, "strict_shapes"));
    rules->strict.push_back({std::string(globs.at(i)), static_cast<plan::MissingRule>(rule[0]),
                             static_cast<plan::UnexpectedRule>(rule[1]),
                             static_cast<plan::CastRule>(rule[2]),
                             static_cast<plan::ShapeRule>(shape)});
  }
  return {};
}

Status check_save_ranges(const shw_save_options& options) {
  SHW_RETURN_IF_ERROR(option_in_range(options.overwrite, SHW_OVERWRITE_REFUSE, "overwrite"));
  SHW_RETURN_IF_ERROR(option_in_range(options.durability, SHW_DURABILITY_NONE, "durability"));
  SHW_RETURN_IF_ERROR(option_in_range(options.digests, SHW_DIGESTS_OFF, "digests"));
  SHW_RETURN_IF_ERROR(option_in_range(options.owner, SHW_OWNER_ALL, "owner"));
  SHW_RETURN_IF_ERROR(
      option_in_range(options.verify_replicas, SHW_VERIFY_REPLICAS_OFF, "verify_replicas"));
  SHW_RETURN_IF_ERROR(option_in_range(options.preset, SHW_PRESET_MEGATRON, "preset"));
  SHW_RETURN_IF_ERROR(option_in_range(options.hold, SHW_HOLD_ON, "hold"));
  SHW_RETURN_IF_ERROR(option_in_range(options.priority, SHW_PRIORITY_BACKGROUND, "priority"));
  SHW_RETURN_IF_ERROR(option_in_range(options.common, SHW_COMMON_OBJECT, "common"));
  SHW_RETURN_IF_ERROR(option_in_range(options.integrity, SHW_INTEGRITY_SHA256, "integrity"));
  if (options.keep_generations > 1000000) {
    return bad_argument("keep_generations",
                        fmt::format("{} is too many", options.keep_generations));
  }
  if ((options.file_mode & ~07777U) != 0) {
    return bad_argument("file_mode", fmt::format("{} is no file mode", options.file_mode));
  }
  return {};
}

}  // namespace

Result<exec::SaveOptions> read_save_options(const shw_save_options& options) {
  SHW_RETURN_IF_ERROR(check_save_ranges(options));
  exec::SaveOptions made;
  made.overwrite = static_cast<exec::Overwrite>(options.overwrite);
  made.durability = static_cast<exec::Durability>(options.durability);
  made.digests = options.digests == SHW_DIGESTS_ON;
  made.rules.owner = static_cast<plan::OwnerRule>(options.owner);
  made.rules.verify_replicas = static_cast<plan::VerifyReplicas>(options.verify_replicas);
  made.rules.preset = static_cast<plan::Preset>(options.preset);
  made.deadline_ns = options.deadline_ns;
  if (options.keep_generations != 0) {
    made.keep_generations = static_cast<int32_t>(options.keep_generations);
  }
  made.file_mode = options.file_mode;
  made.max_shard_bytes = options.max_shard_size;
  made.hold = options.hold == SHW_HOLD_ON;
  made.priority = static_cast<ThreadPriority>(options.priority);
  made.common_as_object = options.common == SHW_COMMON_OBJECT;
  made.lists_digests = options.integrity == SHW_INTEGRITY_SHA256;
  if (options.trace_path != nullptr) made.trace_path = options.trace_path;
  SHW_ASSIGN_OR_RETURN(made.format, format_text(options.format));
  SHW_RETURN_IF_ERROR(read_kinds(options, &made.rules));
  SHW_RETURN_IF_ERROR(read_metadata(options, &made));
  SHW_RETURN_IF_ERROR(exec::check_options(made));
  return made;
}

Result<shw_buffer*> with_metadata(const shw_save_options& options, std::string_view key,
                                  std::string_view value) {
  if (!is_valid_utf8(key)) return bad_argument("key", "it is no UTF-8");
  if (!is_valid_utf8(value)) return bad_argument("value", "it is no UTF-8");
  SHW_ASSIGN_OR_RETURN(const auto texts, metadata_texts(options));
  std::vector<std::string_view> parts;
  parts.reserve(2 * options.metadata_count + 2);
  bool is_there = false;
  for (uint64_t i = 0; i < options.metadata_count; ++i) {
    const bool replaced = texts.at(2 * i) == key;
    parts.push_back(texts.at(2 * i));
    parts.push_back(replaced ? value : texts.at(2 * i + 1));
    is_there = is_there || replaced;
  }
  if (!is_there) parts.insert(parts.end(), {key, value});
  return buffer_of_parts(parts);
}

Result<exec::LoadOptions> read_load_options(const shw_load_options& options) {
  SHW_RETURN_IF_ERROR(option_in_range(options.missing, SHW_MISSING_REPORT, "missing"));
  SHW_RETURN_IF_ERROR(option_in_range(options.unexpected, SHW_UNEXPECTED_ERROR, "unexpected"));
  SHW_RETURN_IF_ERROR(option_in_range(options.cast, SHW_CAST_ALLOW, "cast"));
  SHW_RETURN_IF_ERROR(option_in_range(options.shape, SHW_SHAPE_CROP_AND_PAD, "shape"));
  SHW_RETURN_IF_ERROR(option_in_range(options.verify, SHW_VERIFY_OFF, "verify"));
  SHW_RETURN_IF_ERROR(option_in_range(options.read_path, SHW_READ_PATH_BUFFERED, "read_path"));
  SHW_RETURN_IF_ERROR(option_in_range(options.exchange, SHW_EXCHANGE_ALWAYS, "exchange"));
  SHW_RETURN_IF_ERROR(option_in_range(options.format, SHW_FORMAT_MEGATRON, "format"));
  SHW_RETURN_IF_ERROR(option_in_range(options.preset, SHW_PRESET_MEGATRON, "preset"));
  exec::LoadOptions made;
  made.rules.missing = static_cast<plan::MissingRule>(options.missing);
  made.rules.unexpected = static_cast<plan::UnexpectedRule>(options.unexpected);
  made.rules.cast = static_cast<plan::CastRule>(options.cast);
  made.rules.shape = static_cast<plan::ShapeRule>(options.shape);
  made.rules.preset = static_cast<plan::Preset>(options.preset);
  made.verify = static_cast<exec::VerifyRule>(options.verify);
  made.read_path = static_cast<exec::ReadPath>(options.read_path);
  made.exchange = static_cast<exec::ExchangeRule>(options.exchange);
  made.deadline_ns = options.deadline_ns;
  if (options.trace_path != nullptr) made.trace_path = options.trace_path;
  SHW_RETURN_IF_ERROR(read_strict(options, &made.rules));
  SHW_RETURN_IF_ERROR(exec::check_options(made));
  return made;
}

Result<std::string> wanted_format(int32_t wanted) {
  if (wanted == SHW_FORMAT_AUTO) return std::string();
  return format_text(wanted);
}

Status check_format(int32_t wanted, std::string_view found) {
  if (wanted == SHW_FORMAT_AUTO) return {};
  SHW_ASSIGN_OR_RETURN(const std::string text, format_text(wanted));
  if (text == found || (wanted == SHW_FORMAT_SAFETENSORS && found == "hf-safetensors")) return {};
  return bad_argument("format",
                      fmt::format("'{}' was asked for, the checkpoint is '{}'", text, found))
      .with_detail("expected", text)
      .with_detail("found", found);
}

Status known_flags(uint64_t flags, uint64_t known) {
  if ((flags & ~known) == 0) return {};
  return unimplemented(fmt::format("unknown flags {}, known are {}", flags & ~known, known))
      .with_detail("parameter", "flags")
      .with_detail("flags", std::to_string(flags & ~known));
}

Result<std::shared_ptr<CancellationImpl>> read_cancellation(const shw_cancellation* cancellation) {
  if (cancellation == nullptr) return std::shared_ptr<CancellationImpl>();
  return need(cancellation, "cancellation");
}

Status no_cancellation(const shw_cancellation* cancellation) {
  if (cancellation == nullptr) return {};
  return bad_argument("cancellation", "jobs take none; they are ended by shw_job_cancel");
}

exec::CallContext call_context(int64_t deadline_ns, const CancellationImpl* cancellation) {
  exec::CallContext call;
  if (cancellation != nullptr) call.control.cancellation = &cancellation->flag;
  if (deadline_ns > 0) call.control.end_within(real_clock().monotonic_ns(), deadline_ns);
  return call;
}

exec::CallContext call_on(const CheckpointImpl& checkpoint) {
  return call_context(checkpoint.deadline_ns, checkpoint.cancellation.get());
}

}  // namespace shardwright::capi
