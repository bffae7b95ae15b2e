// SPDX-License-Identifier: Apache-2.0
//
// Errors of the library in four parts: what failed, where, the likely cause, what to type next.
#include <unistd.h>

#include <array>
#include <cstdio>

#include "cli/handles.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

std::string detail_of(const shw_error* error, std::string_view key) {
  for (const shw_error* at = error; at != nullptr; at = shw_error_cause(at)) {
    for (uint64_t i = 0; i < shw_error_detail_count(at); ++i) {
      shw_error_detail detail{};
      if (shw_error_detail_at(at, i, &detail) != SHW_OK) break;
      if (key == detail.key) return std::string(detail.value, detail.value_size);
    }
  }
  return "";
}

// "PATH, tensor w, box [0:4], file F, offset 4096".
std::string place_text(const shw_error* error, const Place& place) {
  std::string text(place.path);
  const auto add = [&](std::string_view label, std::string_view value) {
    if (value.empty() || value == place.path) return;
    if (!text.empty()) text += ", ";
    text.append(label).append(value);
  };
  const std::string tensor = detail_of(error, "tensor");
  if (place.entry != tensor) add("", place.entry);
  add("tensor ", tensor);
  add("box ", detail_of(error, "box"));
  add("file ", detail_of(error, "file"));
  add("offset ", detail_of(error, "offset"));
  add("rank ", detail_of(error, "rank"));
  return text;
}

constexpr char kEarlierStep[] =
    "load an earlier step; shardwright info RUN lists the steps of a run, the newest whole one "
    "among them";

std::string next_of_path(shw_status status) {
  if (status == SHW_DATA_LOSS) return kEarlierStep;
  return "give a directory that holds manifest.shw; shardwright info RUN lists the steps of a run";
}

std::string next_of_checkpoint(shw_status status, std::string_view path) {
  if (status == SHW_DATA_LOSS)
    return "see all damage: shardwright verify --deep " + shell_word(path) + "; then " +
           kEarlierStep;
  return "see names, dtypes and shapes: shardwright ls " + shell_word(path);
}

std::string next_step(shw_status status, const shw_error* error, const Place& place) {
  if (const std::string rule = detail_of(error, "rule"); !rule.empty())
    return "change rule " + rule + " of the mapping, or leave it out";
  switch (status) {
    case SHW_NOT_FOUND:
    case SHW_DATA_LOSS:
    case SHW_INVALID_ARGUMENT:
    case SHW_OUT_OF_RANGE:
      if (place.is == Place::Is::kPath) return next_of_path(status);
      if (place.is == Place::Is::kCheckpoint) return next_of_checkpoint(status, place.path);
      return "check the file, or make it again: shardwright plan --help";
    case SHW_PERMISSION_DENIED:
      return "check the owner and mode of the files, or run as their owner";
    case SHW_ABORTED:
    case SHW_UNAVAILABLE:
      return "run the same command again";
    case SHW_RESOURCE_EXHAUSTED:
      return "give a larger --memory, or free what the cause names";
    case SHW_UNIMPLEMENTED:
      return detail_of(error, "format").empty()
                 ? "use a newer release: shardwright version says which one this is"
                 : "load it with the tool that wrote it, and save it with shardwright";
    case SHW_INTERNAL:
      return "report this with the output of: shardwright version --json";
    default:
      return "shardwright --help";
  }
}

}  // namespace

int Failure::exit_code() const {
  if (unsafe) return kExitRefused;
  if (status == SHW_DATA_LOSS) return kExitDamage;
  return status == SHW_CANCELLED ? kExitInterrupted : kExitFailed;
}

void Failure::print() const {
  const bool color = use_color(STDERR_FILENO);
  const std::array<std::pair<std::string_view, const std::string*>, 4> parts{
      {{"error", &what}, {"where", &where}, {"cause", &cause}, {"next", &next}}};
  std::string text;
  for (const auto& [label, value] : parts) {
    if (value->empty()) continue;
    text += color && label == "error" ? "\033[1;31merror\033[0m" : std::string(label);
    text.append(": ").append(printable(*value)).append("\n");
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void require(shw_status status, Error error, std::string_view what, const Place& place) {
  if (status == SHW_OK) return;
  Failure failure;
  failure.status = status;
  failure.what =
      std::string("cannot ").append(what).append(" (").append(shw_status_name(status)).append(")");
  failure.where = place_text(error.get(), place);
  uint64_t size = 0;
  const char* message = shw_error_message(error.get(), &size);  // of the causes too
  failure.cause.assign(message, size);
  // What is near a name that is not there is part of the message.
  const bool names_nearest =
      status == SHW_NOT_FOUND &&
      (!detail_of(error.get(), "tensor").empty() || !detail_of(error.get(), "object").empty());
  if (!names_nearest) failure.next = detail_of(error.get(), "hint");
  if (failure.next.empty()) failure.next = next_step(status, error.get(), place);
  failure.unsafe = !detail_of(error.get(), "unsafe").empty();
  throw failure;
}

void fail_usage(std::string what, std::string cause, std::string next) {
  Failure failure;
  failure.status = SHW_INVALID_ARGUMENT;
  failure.what = std::move(what);
  failure.cause = std::move(cause);
  failure.next = std::move(next);
  throw failure;
}

std::string_view text_of(const Buffer& buffer) {
  return {static_cast<const char*>(shw_buffer_data(buffer.get())), shw_buffer_size(buffer.get())};
}

}  // namespace shardwright::cli
