// SPDX-License-Identifier: Apache-2.0
#include "core/format/run_directory.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/storage/storage.h"

namespace shardwright::format {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kIterationPrefix = "iter_";  // of Megatron
constexpr size_t kMaxStepDigits = 18;
constexpr uint64_t kTrackerBytesMax = 4096;
constexpr size_t kMaxStepsShown = 5;  // the newest

// "00000100" -> 100.
std::optional<int64_t> number_of_digits(std::string_view digits) {
  if (digits.empty() || digits.size() > kMaxStepDigits) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0)
    return std::nullopt;
  return number;
}

// "step-00000100" -> 100.
std::optional<int64_t> step_number(std::string_view name) {
  for (const std::string_view prefix : {kStepPrefix, kIterationPrefix})
    if (name.starts_with(prefix)) return number_of_digits(name.substr(prefix.size()));
  return std::nullopt;
}

std::string names_of_steps(const RunSteps& steps) {
  std::string names = steps.size() > kMaxStepsShown ? "..., " : "";
  auto step = steps.begin();
  std::advance(step, steps.size() - std::min(steps.size(), kMaxStepsShown));
  for (std::string_view between; step != steps.end(); ++step, between = ", ")
    names += fmt::format("{}{}", between, step->second);
  return names;
}

}  // namespace

Result<RunSteps> find_run_steps(const Location& location) {
  RunSteps found;
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  const auto look = [&](const storage::ListEntry& entry) {
    std::string_view name = std::string_view(entry.key).substr(prefix.size());
    if (!name.ends_with('/')) return Status();
    name.remove_suffix(1);
    const std::optional<int64_t> number = step_number(name);
    if (number.has_value()) found.emplace(*number, name);
    return Status();
  };
  SHW_RETURN_IF_ERROR(location.storage->list(prefix, storage::kDelimiter, look));
  return found;
}

Result<std::string> tracker_text(const Location& location) {
  const auto object = location.storage->open(storage::join_key(location.prefix, kTrackerName),
                                             storage::OpenOptions{});
  if (object.status().code() == StatusCode::kNotFound) return std::string();
  SHW_RETURN_IF_ERROR(object.status());
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, (*object)->stat());
  std::string text(static_cast<size_t>(std::min(stat.size_bytes, kTrackerBytesMax)), '\0');
  SHW_RETURN_IF_ERROR((*object)->read_at(0, std::as_writable_bytes(std::span(text))));
  SHW_RETURN_IF_ERROR((*object)->close());
  const size_t end = text.find_last_not_of(" \t\r\n");
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return end == std::string::npos ? std::string() : text.substr(begin, end + 1 - begin);
}

std::string tracked_step(const RunSteps& steps, std::string_view tracker) {
  const std::optional<int64_t> number = number_of_digits(tracker);
  for (const auto& [step, name] : steps)
    if (number == step && name.starts_with(kIterationPrefix)) return name;
  return {};
}

Status explain_run(const Location& location) {
  SHW_ASSIGN_OR_RETURN(const RunSteps steps, find_run_steps(location));
  SHW_ASSIGN_OR_RETURN(const std::string tracker, tracker_text(location));
  const std::string where = shown_path(location);
  if (steps.empty() && tracker.empty()) return {};
  if (steps.empty()) {
    return invalid_argument(fmt::format("'{}' is the directory of a run of Megatron without a "
                                        "checkpoint: {} names {}, and there is no iter_...",
                                        escape_text(where), kTrackerName, escape_text(tracker, 64)))
        .with_detail("file", where)
        .with_detail("hint", "give the path of a checkpoint itself");
  }
  const std::string tracked = tracked_step(steps, tracker);
  auto shown = std::prev(steps.end());
  if (!tracked.empty()) shown = std::ranges::find(steps, tracked, &RunSteps::value_type::second);
  const std::string why = tracked.empty() ? "" : fmt::format(", which {} names", kTrackerName);
  return invalid_argument(fmt::format("'{}' holds the {} checkpoints of a run, one per step: {}",
                                      escape_text(where), steps.size(), names_of_steps(steps)))
      .with_detail("file", where)
      .with_detail("hint",
                   fmt::format("open one of its directories, such as '{}/{}'{}; `shardwright info` "
                               "lists them, `--step {}` takes one",
                               escape_text(where), shown->second, why, shown->first));
}

}  // namespace shardwright::format
