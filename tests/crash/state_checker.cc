// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/state_checker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/crash/victim/numbered_state.h"
#include "tests/crash/victim/seam.h"

namespace shardwright::crash {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFollowUpNumber = 900;
constexpr size_t kTextBytes = 1024;
constexpr const char* kMarker = "metadata.json";

// Messages of the library's error, which is released.
std::string text_of(shw_status status, shw_error* error) {
  std::string text =
      fmt::format("{}: {}", shw_status_name(status), shw_error_message(error, nullptr));
  shw_error_release(error);
  return text;
}

std::string save(shw_context* context, const std::string& path, uint64_t number, int32_t format) {
  const std::string metadata = fmt::format("number{}", number);
  const uint64_t offsets[] = {0, 6, metadata.size()};
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.metadata = metadata.c_str();
  options.metadata_offsets = offsets;
  options.metadata_count = 1;
  options.format = format;
  numbered_state state{};
  if (numbered_create(&state, number, 0, 1, 1) == 0) return "no memory";
  shw_error* error = nullptr;
  shw_report* report = nullptr;
  const shw_status status =
      shw_save(context, state.state, nullptr, path.c_str(), nullptr, &options, &report, &error);
  shw_report_release(report);
  numbered_release(&state);
  return status == SHW_OK ? "" : "the following save fails: " + text_of(status, error);
}

std::string collect_garbage(shw_context* context, const std::string& path) {
  shw_error* error = nullptr;
  shw_report* report = nullptr;
  const shw_status status =
      shw_checkpoint_gc(context, nullptr, path.c_str(), -1, SHW_GC_APPLY, &report, &error);
  shw_report_release(report);
  return status == SHW_OK ? "" : "gc fails: " + text_of(status, error);
}

// The files of Megatron-core: those of data, and three by their names.
bool is_megatrons(const std::string& name) {
  return name.ends_with(".distcp") || name == ".metadata" || name == "common.pt" || name == kMarker;
}

// Generation of a file that a checkpoint of one rank has, "" where it has no such file.
std::string generation_of(const std::string& name, int32_t format) {
  const auto between = [&](std::string_view before, std::string_view after) -> std::string {
    const bool is_one = name.size() > before.size() + after.size() && name.starts_with(before) &&
                        name.ends_with(after);
    return is_one ? name.substr(before.size(), name.size() - before.size() - after.size()) : "";
  };
  if (format == SHW_FORMAT_NATIVE) return between("", "/rank-00000.shw");
  const std::string of_data = between("__0_0.", ".distcp");
  return of_data.empty() ? between(".shardwright.", ".digests") : of_data;
}

// Files at a path whose names are not those of one checkpoint of one rank.
std::string surplus(const std::string& path, int32_t format) {
  std::set<std::string> indexes = {format == SHW_FORMAT_NATIVE ? "manifest.shw" : ".metadata"};
  if (format == SHW_FORMAT_MEGATRON) indexes.insert({"common.pt", "metadata.json"});
  std::set<std::string> generations;
  std::string more;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = entry.path().lexically_relative(path).string();
    const std::string generation = entry.is_directory() ? name : generation_of(name, format);
    if (!generation.empty()) generations.insert(generation);
    if (generation.empty() && !indexes.contains(name) && name != ".lock") more += " " + name;
  }
  if (generations.size() != 1) more += fmt::format(" ({} generations)", generations.size());
  return more;
}

}  // namespace

void Progress::follow(const RecordedCall& call) {
  const bool is_commit = (call.kind == SEAM_RENAME || call.kind == SEAM_LINK) &&
                         call.second.ends_with("/manifest.shw");
  if (is_commit) expected_.numbers.push_back(begun_);
  if (call.kind != SEAM_MARK) return;
  const uint64_t number = std::strtoull(call.path.c_str() + call.path.find(' '), nullptr, 10);
  if (call.path.starts_with("begin")) begun_ = std::max(begun_, number);
  if (!call.path.starts_with("done")) return;
  // Other ranks may say it late, when the next save is under way.
  auto& numbers = expected_.numbers;
  numbers.erase(std::remove_if(numbers.begin(), numbers.end(),
                               [number](uint64_t each) { return each < number; }),
                numbers.end());
  expected_.may_be_missing = false;
}

std::string make_fast_directory() {
  const char* wanted = std::getenv("TMPDIR");
  std::string parent = wanted != nullptr && *wanted != '\0' ? wanted : "/tmp";
  if (access("/dev/shm", W_OK) == 0) parent = "/dev/shm";
  std::string pattern = parent + "/shw-crash-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
  return pattern;
}

StateChecker::StateChecker(int32_t format) : format_(format), directory_(make_fast_directory()) {
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  if (shw_context_create(&options, &context_, nullptr) != SHW_OK)
    throw std::runtime_error("no context");
}

StateChecker::~StateChecker() {
  shw_context_release(context_);
  std::error_code ignored;
  fs::remove_all(directory_, ignored);  // a test has nobody to tell
}

void StateChecker::clear() {
  placed_.clear();
  for (const auto& entry : fs::directory_iterator(directory_)) fs::remove_all(entry.path());
}

// Only what differs from the tree before is written: most states differ by little.
void StateChecker::place(const FileTree& tree) {
  const auto is_same = [](const auto& a, const auto& b) {
    if ((a == nullptr) != (b == nullptr)) return false;
    return a == b || *a == *b;
  };
  for (auto each = placed_.rbegin(); each != placed_.rend(); ++each) {
    const auto kept = tree.find(each->first);
    if (kept != tree.end() && (kept->second == nullptr) == (each->second == nullptr)) continue;
    if (std::remove((directory_ + "/" + each->first).c_str()) != 0)
      throw std::runtime_error("cannot remove " + each->first);
  }
  for (const auto& [name, bytes] : tree) {
    const auto before = placed_.find(name);
    const std::string path = directory_ + "/" + name;
    if (before != placed_.end() && is_same(before->second, bytes)) continue;
    if (bytes == nullptr) {
      if (mkdir(path.c_str(), 0777) != 0) throw std::runtime_error("cannot make " + path);
      continue;
    }
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const bool is_written =
        file >= 0 &&
        ::write(file, bytes->bytes.data(), bytes->bytes.size()) == std::ssize(bytes->bytes) &&
        ::truncate(path.c_str(), static_cast<off_t>(bytes->size)) == 0;
    if (file >= 0) close(file);
    if (!is_written) throw std::runtime_error("cannot write " + path);
  }
  placed_ = tree;
}

std::string StateChecker::violation(const FileTree& tree, const std::string& checkpoint,
                                    const Expected& expected, bool follow_up) {
  place(tree);
  const std::string path = directory_ + "/" + checkpoint;
  uint64_t found = 0;
  std::string broken = violation_at(path, expected, &found);
  if (!broken.empty() || !follow_up) return broken;
  broken = follow_up_violation(path, kFollowUpNumber);
  clear();
  return broken;
}

std::string StateChecker::violation_at(const std::string& path, const Expected& expected,
                                       uint64_t* found) {
  char text[kTextBytes];
  const uint64_t changes_before = seam_changes();
  const shw_status status = numbered_read(context_, path.c_str(), found, text, sizeof(text));
  if (seam_changes() != changes_before) return "I4: opening changes something";
  if (status == SHW_NOT_FOUND && expected.may_be_missing)
    return violation_for_megatron(path, Expected{{}, true});
  const std::string wanted = fmt::format("expected save {}{}", fmt::join(expected.numbers, " or "),
                                         expected.may_be_missing ? " or NOT_FOUND" : "");
  if (status == SHW_INTERNAL) return fmt::format("I3: {}, {}", wanted, text);
  if (status != SHW_OK)
    return fmt::format("{}: {}, found {}", expected.numbers.empty() ? "I6" : "I1", wanted, text);
  if (std::find(expected.numbers.begin(), expected.numbers.end(), *found) == expected.numbers.end())
    return fmt::format("I2: {}, found save {}", wanted, *found);
  return violation_for_megatron(path, Expected{expected.numbers, true});
}

// Links to Megatron's files alone, read as a whole.
std::string StateChecker::violation_for_megatron(const std::string& path,
                                                 const Expected& expected) {
  if (format_ != SHW_FORMAT_MEGATRON) return "";
  if (!fs::exists(path + "/" + kMarker))
    return expected.may_be_missing ? "" : "I7: there is no marker";
  const std::string seen = path + ".seen";
  fs::remove_all(seen);
  fs::create_directory(seen);
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (is_megatrons(name)) fs::create_hard_link(entry.path(), seen + "/" + name);
  }
  // The newest first, down to what was there before: a journal may wait while others are told.
  std::vector<uint64_t> numbers = expected.numbers;
  if (expected.may_be_missing && !numbers.empty()) {
    uint64_t number = *std::max_element(numbers.begin(), numbers.end());
    uint64_t last = std::min(*std::min_element(numbers.begin(), numbers.end()), number - 1);
    if (path == megatrons_path_) last = std::min(last, megatrons_number_);
    for (numbers = {number}; number > last;) numbers.push_back(--number);
  }
  const auto found = std::find_if(numbers.begin(), numbers.end(), [&](uint64_t number) {
    return numbered_tensors_at(context_, seen.c_str(), number) != 0;
  });
  fs::remove_all(seen);
  if (found == numbers.end())
    return fmt::format("I7: expected save {} or no marker", fmt::join(numbers, " or "));
  megatrons_path_ = path;
  megatrons_number_ = *found;
  return "";
}

std::string StateChecker::follow_up_violation(const std::string& path, uint64_t number) {
  std::string broken = save(context_, path, number, format_);
  if (broken.empty()) broken = collect_garbage(context_, path);
  if (broken.empty()) {
    const std::string more = surplus(path, format_);
    if (!more.empty()) broken = "gc leaves more than is named:" + more;
  }
  uint64_t found = 0;
  if (broken.empty()) broken = violation_at(path, {{number}, false}, &found);
  if (broken.empty()) broken = violation_for_megatron(path, {{number}, false});
  return broken.empty() ? "" : "I5: " + broken;
}

}  // namespace shardwright::crash
