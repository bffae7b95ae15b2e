// SPDX-License-Identifier: Apache-2.0
//
// Owners of the C handles that the commands use, and Failure: the exception that carries an error
// of the library (or a refusal of the command itself) to main, which prints it. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwright/shardwright.h"

namespace shardwright::cli {

template <typename Handle, void (*kRelease)(Handle*)>
struct Releaser {
  void operator()(Handle* handle) const { kRelease(handle); }
};
template <typename Handle, void (*kRelease)(Handle*)>
using Owner = std::unique_ptr<Handle, Releaser<Handle, kRelease>>;

using Context = Owner<shw_context, shw_context_release>;
using Checkpoint = Owner<shw_checkpoint, shw_checkpoint_release>;
using Buffer = Owner<shw_buffer, shw_buffer_release>;
using Report = Owner<shw_report, shw_report_release>;
using Error = Owner<shw_error, shw_error_release>;

// Exit codes of every command.
inline constexpr int kExitFine = 0;
inline constexpr int kExitDamage = 1;  // damage or a difference was found
inline constexpr int kExitFailed = 2;  // usage, or it could not run
inline constexpr int kExitInterrupted = 3;
inline constexpr int kExitRefused = 4;  // refused for safety

// What went wrong, in the four parts that are printed.
struct Failure {
  shw_status status = SHW_INTERNAL;
  std::string what;   // what was being done
  std::string where;  // path, tensor, file and byte range; may be empty
  std::string cause;
  std::string next;  // what to type next
  bool unsafe = false;

  int exit_code() const;
  void print() const;  // to stderr
};

// What a call was about: what it is decides what a user can do next. Texts are borrowed.
struct Place {
  enum class Is { kFile, kPath, kCheckpoint };

  // A file of plans or of a description, or nothing.
  Place(std::string_view file) : path(file) {}    // NOLINT(google-explicit-constructor)
  Place(const char* file) : path(file) {}         // NOLINT(google-explicit-constructor)
  Place(const std::string& file) : path(file) {}  // NOLINT(google-explicit-constructor)
  // Where a checkpoint should be.
  static Place of_path(std::string_view path) { return {Is::kPath, path, {}}; }
  // A checkpoint that was opened; entry: the tensor or object at hand.
  static Place of_checkpoint(std::string_view path, std::string_view entry = {}) {
    return {Is::kCheckpoint, path, entry};
  }

  Is is = Is::kFile;
  std::string_view path;
  std::string_view entry;

 private:
  Place(Is kind, std::string_view at, std::string_view name) : is(kind), path(at), entry(name) {}
};

// Throws when the status is not OK. what: "open the checkpoint".
void require(shw_status status, Error error, std::string_view what, const Place& place);
[[noreturn]] void fail_usage(std::string what, std::string cause, std::string next);

// Calls call(&handle, &error) and gives the handle that it made.
template <typename Handle, void (*kRelease)(Handle*), typename Call>
Owner<Handle, kRelease> made_by(const Call& call, std::string_view what, const Place& place) {
  Handle* raw = nullptr;
  shw_error* raw_error = nullptr;
  const shw_status status = call(&raw, &raw_error);
  require(status, Error(raw_error), what, place);
  return Owner<Handle, kRelease>(raw);
}

// Text of a getter that also gives its size.
template <typename Getter, typename Handle, typename... Index>
std::string_view text_of(Getter getter, const Handle& handle, Index... index) {
  uint64_t size = 0;
  const char* data = getter(handle.get(), index..., &size);
  return {data, size};
}

std::string_view text_of(const Buffer& buffer);

}  // namespace shardwright::cli
